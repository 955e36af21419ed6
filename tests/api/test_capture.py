"""Compiled calls that are watched in place: the one that goes wrong is left as a script."""

from __future__ import annotations

import collections
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchbisect.api import capture, watch_compile  # noqa: E402
from torchbisect.api.capture.compile_options import compile_options  # noqa: E402

pytestmark = pytest.mark.torch


class Smoothed(torch.nn.Module):
    """A module with a bug of torch 2.13 once its window is empty: a deque without room keeps its items under dynamo."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.width, self.window = width, window
        self.inner = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input, as many times as there are items."""
        recent: collections.deque[torch.Tensor] = collections.deque(maxlen=self.window)
        recent.append(self.inner(x))
        return x * len(recent)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def refused(x: torch.Tensor) -> torch.Tensor:
    """Show a bug of torch up to 2.14: the handler of an exception is skipped under dynamo."""
    try:
        return x.view(7)
    except RuntimeError:
        return x + 1


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def scripts(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/repro.py"))


def test_a_step_that_begins_to_differ_is_left_as_a_script(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = torch.compile, torch._dynamo.eval_frame.OptimizedModule.__call__
    model = Smoothed(8, 3)
    compiled = torch.compile(model, backend="eager")  # before the first context
    drawn = []
    torch.manual_seed(3)
    for step in range(1, 10):
        model.window = 3 if step < 6 else 0
        with capture(tmp_path / "repro", every=2):
            inputs = torch.randn(4, 8, requires_grad=True) * 1  # no leaf of the graph
            compiled(inputs)
        drawn.append(float(inputs.detach()[0, 0]))
    assert scripts(tmp_path / "repro") == ["Smoothed-call-7"]
    assert "call 7 of Smoothed: compiled gives" in caplog.text
    assert before == (torch.compile, torch._dynamo.eval_frame.OptimizedModule.__call__)
    # The random numbers of the program are those that it would draw without.
    torch.manual_seed(3)
    assert drawn == [float(torch.randn(4, 8)[0, 0]) for _ in range(9)]
    script = tmp_path / "repro/Smoothed-call-7/repro.py"
    assert "backend='eager'" in script.read_text()
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_exception_that_eager_does_not_raise(tmp_path: Path) -> None:
    with capture(tmp_path):
        compiled = torch.compile(refused, backend="eager")
        with pytest.raises(Exception, match=r"view|shape"):
            compiled(torch.ones(3))
    assert scripts(tmp_path) == ["refused-call-1"]


def test_calls_that_agree_leave_nothing(tmp_path: Path) -> None:
    with capture(tmp_path, every=1):
        compiled = torch.compile(doubled, backend="eager")
        assert all(torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0)) for _ in range(3))
        with pytest.raises(TypeError):
            compiled(torch.ones(2), torch.ones(2))
        compiled(torch.tensor([float("nan")]))
    assert list(tmp_path.iterdir()) == []


def test_calls_that_draw_leave_nothing(tmp_path: Path) -> None:
    compiled = torch.compile(torch.nn.Dropout(), backend="eager")
    with capture(tmp_path / "repro"):
        compiled(torch.ones(64))
    assert not (tmp_path / "repro").exists()


def test_a_compiled_function_and_a_step_are_decorated(tmp_path: Path) -> None:
    compiled = watch_compile(torch.compile(refused, backend="eager"), folder=tmp_path / "a")
    with pytest.raises(Exception, match=r"view|shape"):
        compiled(torch.ones(3))
    model = torch.compile(Smoothed(8, 0), backend="eager")

    @watch_compile(folder=tmp_path / "b")
    def step(x: torch.Tensor) -> torch.Tensor:
        return model(x)

    step(torch.randn(4, 8))
    assert scripts(tmp_path / "a") == ["refused-call-1"]
    assert scripts(tmp_path / "b") == ["Smoothed-call-1"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"backend": "aot_eager"}, {"backend": "aot_eager"}),
        ({"backend": "eager", "dynamic": True}, {"backend": "eager", "dynamic": True}),
        ({"dynamic": False, "mode": "reduce-overhead"}, {"dynamic": False, "options": {"triton.cudagraphs": True}}),
    ],
)
def test_the_options_of_what_was_compiled_before(given: dict[str, Any], found: dict[str, Any]) -> None:
    """The call is made again as the program compiled it."""
    assert compile_options(torch.compile(doubled, **given)) == found
    assert compile_options(torch.compile(Smoothed(2, 1), **given)) == found


def test_an_environment_variable_turns_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHBISECT_CAPTURE", "0")
    before = torch.compile
    with capture(tmp_path):
        assert torch.compile is before
    assert watch_compile(doubled) is doubled
