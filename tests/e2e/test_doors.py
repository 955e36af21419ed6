"""Each way in, from a real bug to a script that stands alone, on an older release and on the installed torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uv
from doors import AHEAD, API, EXPORTED, RECORDED, SUITE, TRACED, TRAINING
from running import Tool

from torchbisect.containers.environment import Environment

pytestmark = [pytest.mark.torch, pytest.mark.e2e, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Torch:
    """A torch that programs run on, and torchbisect beside it.

    Attributes:
        name: as ``--torch`` takes it.
        variables: what makes torchbisect importable there.
    """

    name: str
    python: Path
    tool: Tool
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its Python in the folder of the tool."""
        return subprocess.run(
            [self.python, *words],
            cwd=self.tool.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env={**os.environ, **self.variables, **variables},
        )

    def minimize(self, script: str) -> str:
        """Shrink a script, see the result fail by itself, and return it."""
        done = self.tool.run("minimize", "--torch", self.name, script)
        assert done.returncode == 0, done.stderr
        return self.minimal()

    def minimal(self) -> str:
        """Return the shrunk script of the last report, which fails under plain Python."""
        found = self.tool.report["minimal"]
        assert found["stands_alone"], self.tool.report["notices"]
        assert found["lines"] <= 20, found["source"]
        done = self.run("-I", str(self.tool.out / "minimal.py"))
        assert done.returncode != 0, found["source"]
        return str(found["source"])


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], dict[str, str]]:
    """Install torchbisect, with pytest, in a folder that another Python of the same version takes."""
    folder = tmp_path_factory.mktemp("beside")

    def variables(python: Path) -> dict[str, str]:
        if not any(folder.iterdir()):
            without_torch = tmp_path_factory.mktemp("overrides") / "overrides.txt"
            without_torch.write_text("torch; sys_platform == 'none'\n", encoding="utf-8")
            words = ["pip", "install", "--quiet", "--python", str(python), "--target", str(folder)]
            words += ["--overrides", str(without_torch), str(ROOT), "pytest"]
            subprocess.run([uv.find_uv_bin(), *words], check=True, timeout=300)
        return {"PYTHONPATH": str(folder)}

    return variables


@pytest.fixture(params=["2.8.0", "installed"])
def torch(
    request: pytest.FixtureRequest,
    tool: Tool,
    torch_of: Callable[[str], Environment],
    beside: Callable[[Path], dict[str, str]],
) -> Torch:
    """A torch and an empty folder."""
    name = str(request.param)
    if name == "installed":
        return Torch(name, Path(sys.executable), tool)
    torch_of(name)
    python = tool.python(name)
    return Torch(name, python, tool, beside(python))


def test_a_call_from_python(torch: Torch) -> None:
    done = torch.run(torch.tool.write(API), str(torch.tool.cache))
    assert (done.returncode, done.stdout.strip()) == (0, "mismatch"), done.stderr
    assert "unfold" in torch.minimal()


def test_a_test_of_a_suite(torch: Torch) -> None:
    done = torch.run("-m", "pytest", "-q", "--torchbisect", torch.tool.write(SUITE, "test_it.py"))
    assert "2 tests call compiled code: 1 mismatch, 1 as in eager" in done.stdout, done.stdout + done.stderr
    assert "unfold" in torch.minimize("torchbisect-pytest/test_it.py-test_windows_with_gaps/repro.py")


def test_a_step_of_training_that_returns_nan(torch: Torch) -> None:
    done = torch.run(torch.tool.write(TRAINING))
    assert done.returncode == 0, done.stderr
    assert "call 6 of Mix: compiled gives nan where eager gives" in done.stderr
    minimal = torch.minimize("repro/Mix-call-6/repro.py")
    assert "addmm" in minimal
    assert "nan" in minimal


@pytest.mark.parametrize("sources", [EXPORTED, AHEAD], ids=["exported", "compiled-ahead-of-time"])
def test_an_exported_module(torch: Torch, sources: dict[str, tuple[str, str]]) -> None:
    source, word = sources[torch.name]
    minimal = torch.minimize(torch.tool.write(source))
    assert torch.tool.report["localization"]["component"] == "export"
    assert word in minimal


def test_a_trace(torch: Torch) -> None:
    done = torch.run(torch.tool.write(TRACED, "private.py"), TORCH_TRACE=str(torch.tool.folder / "trace"))
    assert done.returncode == 0, done.stderr
    (torch.tool.folder / "private.py").unlink()
    assert "unfold" in torch.minimize("trace")
    assert torch.tool.report["localization"]["backend"] == "aot_eager"


def test_the_script_of_the_minifier(torch: Torch) -> None:
    done = torch.run(torch.tool.write(RECORDED))
    assert done.returncode == 0, done.stderr
    assert "unfold" in torch.minimize("minifier.py")
    assert torch.tool.report["localization"]["backend"] == "aot_eager"
    assert torch.tool.report["original"]["name"] == "repro.py"
