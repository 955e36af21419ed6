"""Computations move out of a compiled function, and their results become arguments."""

from __future__ import annotations

import ast

import pytest

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.passes.hoist import _hoisted
from torchbisect.minimizer.syntax.tree import text_of


def hoisted(program: str, function: str | int = "f") -> list[str]:
    return [text_of(tree) for tree in _hoisted(parse_python(program), function)]


@pytest.mark.parametrize(
    ("program", "first"),
    [
        ("def f(x, y):\n    return acosh(x * y)\nf(a, b)", "def f(z):\n    return acosh(z)\nf(a * b)"),
        (
            "def f(x, y):\n    t = x * y\n    return acosh(t.clamp(1)) + y\nkeep(torch.compile(f)(a, b))",
            "def f(z, y):\n    return acosh(z) + y\nkeep(torch.compile(f)((a * b).clamp(1), b))",
        ),
        (
            "def f(x):\n    return acosh(x[0] * x[1])\nf(torch.ones(2))",
            "def f(z):\n    return acosh(z)\nx_ = torch.ones(2)\nf(x_[0] * x_[1])",
        ),
        ("def f(x, y):\n    return (x * 2).add_(y)\nf(a, b)", "def f(z, y):\n    return z.add_(y)\nf(a * 2, b)"),
    ],
)
def test_the_largest_computation_goes_first(program: str, first: str) -> None:
    assert hoisted(program)[0].replace("\n\n", "\n") == first


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return acosh(x)\nf(a)",
        "def f(x):\n    return acosh(x * 2)\nf(a)\nf(b)",
        "def f(x=1):\n    return acosh(x * 2)\nf()",
        "def f(x):\n    for y in x:\n        acosh(y * 2)\nf(a)",
    ],
)
def test_what_the_call_does_not_know_stays(program: str) -> None:
    assert hoisted(program) == []


def test_the_result_has_a_name_of_its_own() -> None:
    (tree,) = _hoisted(parse_python("def f(x):\n    return acosh(x * z)\nz = 1\nf(a)"), "f")
    assert "z2" in {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def test_a_lambda_is_a_function_where_it_is_compiled() -> None:
    program = "keep(torch.compile(lambda x, y: (x * y).exp(), dynamic=True)(a, b))"
    assert hoisted(program, 0) == ["keep(torch.compile(lambda z: z.exp(), dynamic=True)(a * b))"]
    assert hoisted("keep(map(lambda x: (x * 2).exp(), a))", 0) == []
    assert hoisted("keep(1)", 0) == []
