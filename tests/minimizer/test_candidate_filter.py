"""Candidates that cannot be evidence are found before they are asked about."""

from __future__ import annotations

import pytest

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.defects import count_defects

_FUNCTION = """\
torch.compile
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x
    @staticmethod
    def backward(ctx, g):
        {}
"""


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("torch.compile(f)(torch.randn(0))", "empty"),
        ("torch.compile(f)(torch.tensor([]))", "empty"),
        ("torch.compile(f)(torch.ones())", "empty"),
        ("torch.compile(f)(torch.randn)", "callable"),
        ("torch.compile\ndef f(x):\n    return x\nf(1, 2)", "arity"),
        ("torch.compile\ndef f(x):\n    x + 1\ny = f(1)", "no value"),
        ("torch.compile\nclass A(Module):\n    def forward(self, x):\n        return self.w", "no attribute w"),
        ("@torch.compile\ndef f(x):\n    x + 1\ny = f(1)", "no value"),
        ("def f(x):\n    x + 1\ntorch.compile(f, backend='eager')(1).sum()", "no value"),
        ("@torch.compile\ndef f(x):\n    return x\nf(1, 2)", "arity"),
        ("@torch.compile\ndef f(x):\n    return x\ng(1)", "compiled in vain"),
        ("def f(x):\n    return x\ng = torch.compile(f)\nf(1)", "compiled in vain"),
        ("def f(x):\n    return x\ntorch.compile(f)\nf(1)", "compiled in vain"),
        (
            "def train():\n    g = torch.compile(f)\n    return g(1)\nprint(torch._dynamo.config.verbose)",
            "compiled in vain",
        ),
        (_FUNCTION.format("return g"), "gradients 0"),
        (_FUNCTION.format("return g,"), "gradients"),
        (_FUNCTION.format("pass"), "silent backward"),
        ("torch.compile\nclass A(Module):\n    def __init__(self):\n        self.w = 1", "no super"),
        ("f(x)", "no compile"),
        ("torch.compile(f)(1.0[0])", "no container"),
        ("torch.compile(f)(*2)", "no container"),
        ("torch.compile\na, b = 1", "no container"),
        ("torch.compile\nfor item in 3:\n    f(item)", "no container"),
        ("torch.compile\nf([item for item in None])", "no container"),
    ],
)
def test_the_fault_of_a_candidate_is_found(program: str, fault: str) -> None:
    name, _, number = fault.rpartition(" ")
    assert count_defects(parse_python(program))[name if number == "0" else fault] == (number != "0")


def test_small_tensors_are_no_fault() -> None:
    program = "torch.compile(f)(torch.zeros(()), torch.full((2,), 0), torch.arange(0, 4), torch.randint(0, 9, (3,)))"
    assert not count_defects(parse_python(program))
