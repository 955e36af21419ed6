"""Changes of the installed torch that make a number worse and no result wrong, each with a benchmark that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from nightly_index import Change

_HARDSIGMOID = "def hardsigmoid(self: Tensor) -> Tensor:\n    return torch.clamp(torch.clamp({}, min=0), max=6) / 6{}\n"
_PLAIN = _HARDSIGMOID.format("self + 3", "")


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
    return torch.nn.functional.hardsigmoid(x)


x = torch.linspace(-4, 4, {size})


def benchmark():
    gate(x)


benchmark()
"""

STEPS = {
    # Two more operators of five, in a decomposition.
    "slower": Step(
        Change("torch/_decomp/decompositions.py", _PLAIN, _HARDSIGMOID.format("self + 1 + 1 + 1", "")),
        "time",
        "1.15",
        _GATE.format(size=1 << 20),
    ),
    # A pass over the graph that is made over and over.
    "compile": Step(
        Change("torch/fx/graph.py", "        self.lint()\n", "        for _ in range(100):\n            self.lint()\n"),
        "compile-time",
        "1.4",
        "import torch\n\n\n@torch.compile(backend='aot_eager')\ndef chain(x):\n    for number in range(60):\n"
        "        x = torch.sin(x) + number\n    return x\n\n\nchain(torch.ones(3))\n",
    ),
    # A copy of the input that lives until the end.
    "memory": Step(
        Change("torch/_decomp/decompositions.py", _PLAIN, _HARDSIGMOID.format("(copy := self + 3)", " + copy * 0")),
        "memory",
        "1.1",
        _GATE.format(size=1 << 24),
    ),
}
