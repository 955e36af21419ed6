"""Known mismatches as a generator of large scripts needs them: the small script, and the statements that show it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_LARGE = Path(__file__).resolve().parent / "large"


@dataclass(frozen=True)
class Bug:
    """A known mismatch.

    Attributes:
        name: the name by which it is chosen.
        minimal: the script that a person reduced it to.
        backend: the cheapest backend that shows it.
        statements: compute ``out`` from ``h``, a matrix that requires a gradient, and show the mismatch in ``out``.
        definitions: what the statements need at module level.
        imports: the modules of the standard library that they need.
    """

    name: str
    minimal: str
    backend: str
    statements: str
    definitions: str = ""
    imports: tuple[str, ...] = ()


_SETITEM = """\
import torch
@torch.compile(backend="eager")
def f(x):
    y = torch.zeros(1)
    y[torch.tensor([0])] = x
    assert y.requires_grad
f(torch.ones(1, requires_grad=True))
"""

_DIRTY = """\
import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)
    @staticmethod
    def backward(ctx, g):
        return g * 2
@torch.compile(backend="eager")
def f(x):
    y = x * 1
    F.apply(y)
    return y
x = torch.ones(1, requires_grad=True)
f(x).backward()
assert x.grad == 2
"""


_CELU = """\
import torch
@torch.compile(backend="aot_eager_decomp_partition")
def f(x):
    return torch.celu_(x, 0.0)
try:
    f(torch.ones(1))
except RuntimeError:
    pass
else:
    raise AssertionError("compiled raises nothing")
"""


_IMUL = """\
import torch
@torch.compile(backend="eager")
def f(x):
    a = [1]
    b = a
    b *= 2
    return x + len(a)
assert f(torch.zeros(1)) == 2
"""

_COPY = """\
import torch
@torch.compile(backend="eager")
def f(x):
    y = torch.zeros(1)
    y.copy_(x)
    assert y.requires_grad
f(torch.ones(1, requires_grad=True))
"""


def _minimal(name: str) -> str:
    return (_LARGE / f"{name}.minimal.py").read_text()


BUGS = {
    bug.name: bug
    for bug in (
        Bug(
            "setitem",
            _SETITEM,
            "eager",
            "canvas = torch.zeros(h.shape[0], h.shape[1])\n"
            "columns = torch.arange(h.shape[1])\n"
            "canvas[:, columns] = h * 0.5\n"
            "out = canvas.abs() if canvas.requires_grad else canvas",
        ),
        Bug(
            "detach",
            _minimal("gated_search"),
            "eager",
            "gate = torch.sigmoid(h)\ngate.detach_()\nout = h.abs() * gate if gate.requires_grad else h * gate",
        ),
        Bug(
            "deque",
            _minimal("replay_agent"),
            "eager",
            "recent = collections.deque(range(3), maxlen=0)\nrecent.append(4)\nout = h + h.abs() * len(recent)",
            imports=("collections",),
        ),
        Bug(
            "isub",
            _minimal("feature_pipeline"),
            "eager",
            'kinds = {"mean", "peak", "spread"}\noperator.isub(kinds, {"peak"})\nout = h + h.abs() * len(kinds)',
            imports=("operator",),
        ),
        Bug(
            "except",
            _minimal("ragged_trainer"),
            "eager",
            "try:\n    out = h.view(13, -1).sum(0)\nexcept RuntimeError:\n    out = h + 0.5",
        ),
        Bug(
            "dirty",
            _DIRTY,
            "eager",
            "scaled = h * 0.5\nScaleInPlace.apply(scaled)\nout = scaled",
            "class ScaleInPlace(torch.autograd.Function):\n"
            "    @staticmethod\n"
            "    def forward(ctx, values):\n"
            "        values.mul_(3.0)\n"
            "        ctx.mark_dirty(values)\n"
            "        return values\n\n"
            "    @staticmethod\n"
            "    def backward(ctx, grad):\n"
            "        return grad * 3.0",
        ),
        Bug(
            "unfold",
            _minimal("overlap_add"),
            "aot_eager",
            "padded = h.detach() + 1.0\npadded.unfold(1, 1, 2).mul_(2.0)\nout = h + padded",
        ),
        Bug(
            "celu",
            _CELU,
            "aot_eager_decomp_partition",
            "activated = h.detach() - 0.5\ntorch.celu_(activated, 0.0)\nout = h + activated",
        ),
        Bug(
            "imul",
            _IMUL,
            "eager",
            "lanes = [1]\nspread = lanes\nspread *= 3\nout = h + h.abs() * len(lanes)",
        ),
        Bug(
            "copy",
            _COPY,
            "eager",
            "slots = torch.zeros(h.shape[0], h.shape[1])\n"
            "slots.copy_(h)\n"
            "out = slots.abs() if slots.requires_grad else slots",
        ),
    )
}
"""The mismatches by their names; each is in torch 2.8.0."""
