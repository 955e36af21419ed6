"""Code that nothing uses is removed."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("import os, sys\nx: int = 1\ndef f(a: int) -> int:\n    return sys\nf(1)", ["f(1)"], "import sys"),
        ("class A:\n    N = 2\n    M = 3\nkeep(A().N)", ["keep"], "class A:\n    N = 2\nkeep(A().N)"),
        (
            "class A:\n    def on_start(self):\n        keep(1)\n    def on_end(self):\n        pass\n"
            "def emit(event):\n    getattr(A(), event)()\nemit('on_start')",
            ["keep", "on_start(self)"],
            "class A:\n\n    def on_start(self):\n        keep(1)\n\n"
            "def emit(event):\n    getattr(A(), event)()\nemit('on_start')",
        ),
        (
            "def h(a):\n    return keep(a)\nclass F(torch.autograd.Function):\n    @staticmethod\n"
            "    def forward(ctx, x, a):\n        ctx.save_for_backward(a)\n        ctx.n = 1\n        return x\n"
            "    @staticmethod\n    def backward(ctx, g):\n        a, = ctx.saved_tensors\n        return g * 2, None\n"
            "h(F.apply(x, 1))",
            ["keep", "F.apply(x, 1)"],
            "def forward(ctx, x, a):\n        return x\n\n    @staticmethod\n    def backward(ctx, g):\n"
            "        return (g * 2, None)",
        ),
        (
            "class Step(NamedTuple):\n    a: int\n    b: int\n    c: int\nkeep(Step(1, 2, 3).c)",
            ["keep"],
            "class Step(NamedTuple):\n    c: int\nkeep(Step(3).c)",
        ),
        ("a = torch.ones(2)\nb = keep()\nc = a", ["keep"], "keep()"),
        ("a = 0\nfor b in c():\n    a += keep(b)", ["keep(b)", "c()"], "for b in c():\n    keep(b)"),
    ],
)
def test_unused_definitions_and_names_are_removed(program: str, words: list[str], left: str) -> None:
    assert left in after("remove_unused", program, *words)


def test_registered_functions_stay_while_the_registry_is_read() -> None:
    program = """
REGISTRY = {}
def register(name):
    def wrap(function):
        REGISTRY[name] = function
        return function
    return wrap
def timed(function):
    return function
@register('a')
def first(x):
    return x
@timed
def second(x):
    return x
"""
    assert after("remove_unused", program + "keep(REGISTRY['a'])", "keep").count("def first") == 1
    assert "second" not in after("remove_unused", program + "keep(REGISTRY['a'])", "keep")
    assert after("remove_unused", program + "keep()", "keep") == "keep()"


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("y * g() * (g() + 1)", "    y = x\n    g()\n    g()\n"),
        ("g(y) * 2", "    y = x\n    y = g(y) * 2\n"),  # the call needs the value
        ("y * torch.sin(x) + g()", "    y = x\n    g()\n"),
    ],
)
def test_of_an_assignment_that_only_itself_reads_the_calls_stay(value: str, left: str) -> None:
    program = f"import torch\ndef f(x):\n    y = x\n    y = {value}\n    return keep(x)\nf(1)"
    assert left in after("remove_unused", program, "keep", "g(", *(["g()\n    g()"] if value.count("g()") > 1 else []))
