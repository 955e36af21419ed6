"""The pytest plugin: a suite's tests are compared with eager, and those that differ fail and leave a script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from compared_suite import SUITE
from running import Tool

pytestmark = pytest.mark.torch


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--show-capture=no", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The sample suite, run once under the plugin: its folder and what pytest said."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_net.py").write_text(SUITE, encoding="utf-8")
    return folder, run_pytest(folder, "--torchbisect").stdout


@pytest.mark.long
def test_the_tests_that_meet_a_bug_fail_and_no_others(compared: tuple[Path, str]) -> None:
    _, said = compared
    failed = {line.split("::")[1].split(" ")[0] for line in said.splitlines() if line.startswith("FAILED")}
    assert failed == {
        "test_bug_values",
        "test_bug_mutation",
        "test_bug_module",
        "test_bug_side_effect",
        "test_bug_exception",
    }
    assert "13 tests call compiled code: 5 mismatches, 8 as in eager" in said
    assert "compiled gives 12 where eager gives 0" in said


@pytest.mark.long
def test_each_mismatch_leaves_a_script_that_shows_it(compared: tuple[Path, str]) -> None:
    folder, _ = compared
    left = {path.parent.name for path in (folder / "torchbisect-pytest").glob("*/repro.py")}
    assert left == {
        f"test_net.py-test_bug_{name}" for name in ("values", "mutation", "module", "side_effect", "exception")
    }
    script = folder / "torchbisect-pytest/test_net.py-test_bug_module"
    assert (script / "repro.pt").exists()
    # The state is compiled from the file, and nothing of the suite is imported.
    done = subprocess.run([sys.executable, "repro.py"], cwd=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SHARED = """
import pytest
import torch


@pytest.fixture(scope="module")
def layer():
    return torch.nn.Linear(2, 2)


@pytest.fixture(scope="module")
def counts():
    return []


@pytest.mark.parametrize("rows", [1, 3])
def test_draws_after_the_layer(layer, rows):
    torch.compile(layer, backend="eager")(torch.randn(rows, 2))


def test_trains_the_layer(layer):
    loss = torch.compile(layer, backend="aot_eager")(torch.ones(1, 2)).sum()
    loss.backward()
    torch.optim.SGD(layer.parameters(), 0.1).step()


def test_counts(counts):
    counts.append(1)
    torch.compile(lambda x: x * len(counts), backend="eager")(torch.ones(1))
"""


@pytest.mark.long
def test_what_tests_share_is_no_mismatch(tmp_path: Path) -> None:
    (tmp_path / "test_shared.py").write_text(SHARED, encoding="utf-8")
    done = run_pytest(tmp_path, "--torchbisect")
    assert "4 tests call compiled code: 0 mismatches, 4 as in eager" in done.stdout
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_from_a_test_to_a_script_that_stands_alone(compared: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = compared
    script = folder / "torchbisect-pytest/test_net.py-test_bug_module/repro.py"
    done = Tool(folder, tmp_path / "cache").run("minimize", "--out", str(tmp_path / "out"), str(script))
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["minimal"]["stands_alone"]
    assert "repro.pt" not in report["minimal"]["source"]
    assert report["minimal"]["lines"] <= 10


def test_it_is_off_by_default_and_imports_no_torch(tmp_path: Path) -> None:
    (tmp_path / "test_torch.py").write_text("import sys\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "torchbisect" not in done.stdout.partition("plugins:")[2].partition("\n")[2]
