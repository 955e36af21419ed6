"""Changes of the installed torch that make a number worse and no result wrong, each with a script that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from nightly_index import Change

_SUM = "    return {}torch.clamp(torch.clamp({}, min=0), max=6) / 6{}\n"
_HARDSIGMOID = "def hardsigmoid(self: Tensor) -> Tensor:\n" + _SUM
_HARDSWISH = "def hardswish(self: Tensor) -> Tensor:\n" + _SUM


@dataclass(frozen=True)
class Step:
    """A change, the number that it makes worse, a ratio well below its own, and the script that is measured."""

    change: Change
    measure: str
    worse_by: str
    script: str


_GATE = """\
import torch


@torch.compile(backend="aot_eager_decomp_partition")
def gate(x):
    return torch.nn.functional.{name}(x).mul(x).add(x).neg()


x = torch.linspace(-4, 4, {size})
{rest}"""
_CHAIN = """\
import torch


@torch.compile(backend="aot_eager")
def chain(x):
    for number in range(60):
        x = torch.sin(x) + number
    return x


chain(torch.ones(3))
"""

STEPS = {
    # Ten operators in place of seven.
    "slowdown": Step(
        Change(
            "torch/_decomp/decompositions.py",
            _HARDSIGMOID.format("", "self + 3", ""),
            _HARDSIGMOID.format("", "self + 1 + 1 + 0.5 + 0.5", ""),
        ),
        "time",
        "1.15",
        _GATE.format(name="hardsigmoid", size=1 << 18, rest="\n\ndef benchmark():\n    gate(x)\n"),
    ),
    # A check of the graph that is made over and over.
    "slow pass": Step(
        Change(
            "torch/fx/graph.py", "        self.lint()\n", "        for _ in range(2200):\n            self.lint()\n"
        ),
        "compile-time",
        "1.4",
        _CHAIN,
    ),
    # A copy of the input that lives until the end.
    "kept copy": Step(
        Change(
            "torch/_decomp/decompositions.py",
            _HARDSWISH.format("self * ", "self + 3", ""),
            _HARDSWISH.format("self * ", "(copy := self + 3)", " + copy * 0"),
        ),
        "memory",
        "1.1",
        _GATE.format(name="hardswish", size=1 << 24, rest="gate(x)\ngate(x)\n"),
    ),
}
