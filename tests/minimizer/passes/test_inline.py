"""Functions give way to their bodies."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        (
            "def f(a, *b):\n    c = g(b)\n    return c\ndef h(f):\n    return f\nkeep(f(1, 2, 3))",
            ["keep", "h"],
            "b = (2, 3)\nc = g(b)\nkeep(c)",
        ),
        ("def f(a, b=2):\n    c = a + b\n    return c\nkeep(f(g()))", ["keep"], "a = g()\nc = a + 2"),
        (
            "class A:\n    def step(self, /, n):\n        self.n = n\n        return self.inner(n)\n"
            "    def inner(self, n):\n        return self.n + n\n    def __call__(self):\n        return 1\n"
            "a = A()\nkeep(a.step(2), a())",
            ["keep"],
            "class A:\n\n    def __call__(self):\n        return 1\na = A()\na.n = 2\nkeep(a.n + 2, a())",
        ),
        (
            "def f(a):\n    if a:\n        return 1\n    keep(a)\n"
            "def h(b):\n    if b:\n        return f(b)\n    g()\nh(1)",
            ["keep", "def h"],
            "def h(b):\n    if b:\n        if b:\n            return 1\n        keep(b)\n        return\n    g()",
        ),
        ("def f(a):\n    if a:\n        return 1\n    keep(a)\nh = f(b)", ["keep"], "h = f(b)"),
        (
            "class A:\n    def room(self, n):\n        return n - self.held\nwhile keep(a.room(3)):\n    g(a)",
            ["keep", "while"],
            "while keep(3 - a.held):\n    g(a)",
        ),
        ("def f(a):\n    return a + 1\nkeep([f(x) for x in b])", ["keep", "for"], "keep([x + 1 for x in b])"),
        ("def f(a):\n    g()\n    return a\nwhile f(b):\n    keep()", ["keep", "while"], "while f(b):"),
        ("def f(**a):\n    h(a)\nf(b=1)\nkeep()", ["keep", "h"], "a = {'b': 1}\nh(a)"),
        (
            "class A:\n    def step(self):\n        self.n = self.m\na[0].b['c'].step()\nkeep()",
            ["keep", ".m"],
            "a[0].b['c'].n = a[0].b['c'].m",
        ),
        (
            "class A:\n    def step(self):\n        self.n = self.m\ng().step()\nkeep()",
            ["keep", ".m", "g"],
            "self = g()\nself.n = self.m",
        ),
        (
            "@contextmanager\ndef f(n):\n    g(n)\n    try:\n        yield n\n    finally:\n        h()\n"
            "with f(1) as m:\n    keep(m)",
            ["keep", "g", "h"],
            "g(1)\ntry:\n    m = 1\n    keep(m)\nfinally:\n    h()",
        ),
        ("def f(a):\n    return a + 1\nwhile f(g()):\n    keep()", ["keep", "while"], "while f(g()):"),
    ],
)
def test_a_function_gives_way_to_its_body(program: str, words: list[str], left: str) -> None:
    assert left in after("inline", program, *words)


def test_a_generator_becomes_a_function_that_returns_its_first_item() -> None:
    program = """
def render(n):
    for i in range(n):
        yield keep(i)
def other():
    yield 1
next(iter(render(3)))
for item in other():
    keep(item)
"""
    text = after("inline.generators", program, "keep(i)", "keep(item)")
    assert "return keep(i)" in text
    assert "\nrender(3)\n" in text
    assert "for item in [other()]" in text


@pytest.mark.parametrize("decorated", ["@f", "def g():\n    return f\n@g()"])
def test_a_decorator_gives_way_to_what_it_makes_of_the_function(decorated: str) -> None:
    program = f"""
def f(x):
    def inner(y, n=2):
        return x(y, n) + 1
    return inner
{decorated}
def h(y, n):
    return keep(y, n)
h(1)
"""
    text = after("inline", program, "keep", "+ 1")
    assert "return keep(y, n) + 1" in text
    assert "@" not in text


def test_a_decorator_of_many_functions_stays_and_takes_no_time() -> None:
    """Each order in which nine functions could lose their decorator would be a third of a million scripts."""
    functions = "".join(f"@f\ndef h{number}(y):\n    return y\n" for number in range(9))
    program = f"def f(x):\n    return x\n{functions}keep(h0(h0(1)))\n"
    assert "@f" in after("inline", program, "keep", "@f")
