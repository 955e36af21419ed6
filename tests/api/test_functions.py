"""The functions of ``torchbisect.api``: a call is compared in the caller's process, and left as a script."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchbisect.api import CheckOptions, check, check_module, minimize
from torchbisect.core.errors import InputError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FACTOR = 3.0


def counted(x: torch.Tensor, length: int) -> torch.Tensor:
    """Show a bug of torch 2.13: a deque without room keeps its items under dynamo."""
    recent: collections.deque[int] = collections.deque([1, 2, 3], maxlen=length)
    recent.append(4)
    return x * len(recent) * FACTOR


class Head(torch.nn.Module):
    """A module with parameters whose forward shows the same bug."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.inner = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input, as many times as there are items."""
        return self.inner(x) * counted(x, 0)


def options(folder: Path, **changed: object) -> CheckOptions:
    return CheckOptions(compile={"backend": "eager"}, out=folder / "out", **changed)  # type: ignore[arg-type]


def test_importing_it_imports_no_torch() -> None:
    code = "import sys, torchbisect.api; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_call_that_differs(tmp_path: Path) -> None:
    x = torch.ones(2)
    report = check(counted, x, 0, torchbisect=options(tmp_path))
    assert report.verdict == "mismatch"
    assert report.mismatch is not None
    assert report.mismatch.summary.startswith("compiled gives 12 where eager gives 0")
    assert torch.equal(x, torch.ones(2))
    saved = json.loads((tmp_path / "out/report.json").read_text())
    assert saved["mismatch"]["fingerprint"] == report.mismatch.fingerprint
    done = subprocess.run([sys.executable, tmp_path / "out/repro.py"], check=False, cwd=tmp_path)
    assert done.returncode == 0


def test_a_call_that_agrees_leaves_torch_as_it_was(tmp_path: Path) -> None:
    before = torch.compile, torch._dynamo.optimize
    report = check(counted, torch.ones(2, requires_grad=True), 2, torchbisect=options(tmp_path))
    assert (report.verdict, report.mismatch, report.original) == ("none", None, None)
    assert (torch.compile, torch._dynamo.optimize) == before
    assert not (tmp_path / "out/repro.py").exists()


def test_a_call_that_raises_what_eager_raises_agrees(tmp_path: Path) -> None:
    report = check(torch.mm, torch.ones(2, 2), torch.ones(2, 2).double(), torchbisect=options(tmp_path))
    assert (report.verdict, report.mismatch) == ("none", None)


def test_a_module_and_its_state(tmp_path: Path) -> None:
    head = Head(32)
    report = check_module(head, torch.randn(4, 32), torchbisect=options(tmp_path))
    assert report.verdict == "mismatch"
    assert set(torch.load(tmp_path / "out/repro.pt")) == {"model", "x"}
    assert all(item.grad is None for item in head.parameters())


def test_a_call_that_no_script_can_make(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        handle = file.fileno

        def reads(x: torch.Tensor) -> torch.Tensor:
            return counted(x, 0) if handle is not None else x

        report = check(reads, torch.ones(2), torchbisect=options(tmp_path))
    assert report.verdict == "mismatch"
    assert any("can't be written as a script" in notice for notice in report.notices)


def test_what_is_compiled_already_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not compiled yet"):
        check(torch.compile(counted, backend="eager"), torch.ones(2), 0, torchbisect=options(tmp_path))


@pytest.mark.long
def test_from_a_call_to_a_script_that_stands_alone(tmp_path: Path) -> None:
    run = {"cache_dir": tmp_path / "cache"}
    report = minimize(Head(32), torch.randn(4, 32), torchbisect=options(tmp_path, run=run))
    assert report.minimal is not None
    assert report.minimal.stands_alone
    assert "repro.pt" not in report.minimal.source
    assert report.minimal.lines <= 10
