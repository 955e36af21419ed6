"""Parameters are deleted with their arguments, returned elements with their targets."""

from __future__ import annotations

import pytest
from pass_runner import after

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.passes import delete_parameters


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("def f(x, y, z):\n    return x + y\nkeep(f(a, 1, b))", ["keep"], "def f(x):\n    return x + 1"),
        (
            "class A:\n    pass\ndef f(x, y):\n    return x.n + y.n\na = A()\nkeep(f(a, b), f(a, c))",
            ["keep", "a.n"],
            "def f(y):\n    return a.n + y.n\na = A()",
        ),
        ("def f():\n    return a, b\nx, y = f()\nkeep(x)", ["keep", "a"], "return a\nx = f()"),
        (
            "class N(Module):\n    def forward(self, x, y):\n        return 1\nclass M:\n    def __init__(self, x):\n"
            "        pass\nm = M(3)\nn = N()\nkeep(n(2, 4), m)",
            ["keep"],
            "class N(Module):\n\n    def forward(self):\n        return 1\n\nclass M:\n\n    def __init__(self):\n"
            "        pass\nm = M()\nn = N()\nkeep(n(), m)",
        ),
    ],
)
def test_parameters_are_deleted_with_their_arguments(program: str, words: list[str], left: str) -> None:
    assert left in after("delete_parameters.functions", program, *words)


def test_an_argument_of_an_autograd_function_is_deleted_everywhere() -> None:
    program = """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, a, b):
        ctx.save_for_backward(a, b)
        return t
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, None, None
keep(Scale.apply(x, y, z))
"""
    text = after("delete_parameters.autograd_functions", program, "keep", "g * b")
    assert "Scale.apply(x)" in text or "Scale.apply(x, z)" in text
    assert "(ctx, t, a, b)" not in text


def test_a_parameter_that_is_bound_anew_before_it_is_read_is_deleted() -> None:
    program = "def f(x, y):\n    y = g(x)\n    keep(y)\nf(a, b)\ndef h(x, y):\n    y = g(y)\n    keep(y)\nh(a, b)"
    text = after("delete_parameters.functions", program, "keep(y)", "f(a", "h(a")
    assert "def f(x):\n    y = g(x)" in text
    assert "def h(x, y):" in text


def test_parameters_of_a_function_that_another_makes_are_deleted() -> None:
    program = (
        "def make():\n    def g(y, z):\n        keep()\n    return g\ntorch.compile(make(), backend='eager')(1, 2)"
    )
    text = after("delete_parameters.functions", program, "keep()", "compile(make()")
    assert text == "def make():\n\n    def g():\n        keep()\n    return g\ntorch.compile(make(), backend='eager')()"


def test_a_parameter_that_an_override_reads_stays_without_a_question() -> None:
    program = "class A:\n    def f(self, x):\n        pass\nclass B(A):\n    def f(self, x):\n        keep(x)\nb.f(y())"
    assert list(delete_parameters._parameter_edits(parse_python(program))) == []
    text = after("delete_parameters.functions", program.replace("keep(x)", "keep(1)"), "keep", "b.f", "class A", "A)")
    assert "def f(self):\n        keep(1)\nb.f()" in text
    assert "(self, x)" not in text


def test_further_arguments_that_are_only_passed_on_go() -> None:
    program = "def f(*x, **y):\n    return g(1, *x, **y)\nkeep(f())\ndef h(*x):\n    keep(x)"
    text = after("delete_parameters.functions", program, "keep(f", "keep(x)")
    assert "def f():\n    return g(1)" in text
    assert "def h(*x)" in text
