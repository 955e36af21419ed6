"""The root folders must not hide the standard library's modules, and imports must point down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PARTS = ["cli", "api", "triage", "pipeline", "reports", "minimizer", "bisect", "probe", "containers", "core"]


@pytest.mark.parametrize("module", ["bisect", "random", "tempfile"])
def test_a_python_started_in_the_root_finds_the_standard_library(module: str) -> None:
    """``-S`` leaves out site hooks, which could have imported the module before the root came into play."""
    code = f"import sys, {module}; sys.exit({module}.__file__.startswith({str(ROOT)!r}))"
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, check=False).returncode == 0


def test_nothing_closes_the_namespace() -> None:
    closing = [ROOT / part / "__init__.py" for part in PARTS]
    closing += [ROOT / part / "torchbisect" / "__init__.py" for part in PARTS]
    closing += (ROOT / "tests").rglob("__init__.py")
    assert [str(path) for path in closing if path.exists()] == []


@pytest.mark.parametrize("part", PARTS)
def test_every_part_says_that_it_is_typed(part: str) -> None:
    assert (ROOT / part / "torchbisect" / part / "py.typed").exists()


def test_the_command_starts_without_importing_torch() -> None:
    """Torch is for the environment under test alone; importing it here would cost seconds and memory too."""
    code = "import sys, torchbisect.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_line_that_imports_must_not_cross() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("flag", ["-V", "--version", "--help"])
def test_the_module_is_the_command(flag: str, tmp_path: Path) -> None:
    done = [
        subprocess.run([sys.executable, "-m", name, flag], cwd=tmp_path, capture_output=True, text=True, check=False)
        for name in ("torchbisect", "torchbisect.cli.main")
    ]
    assert [one.returncode for one in done] == [0, 0]
    assert done[0].stdout.splitlines()[1:] == done[1].stdout.splitlines()[1:]
    assert done[0].stdout.startswith(("Usage: python -m torchbisect [", "torchbisect, version"))
