"""Blocks give way to their bodies, and conditions become factors."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("with open(p) as f:\n    for i in range(3):\n        keep()", ["keep"], "keep()"),
        ("a, b = (f(), g())\nkeep(a)", ["keep", "f()\n"], "a = f()\nb = g()\nkeep(a)"),
        (
            "for i, (a, b) in enumerate(zip((1, 2), (3,))):\n    keep(i, a, b)\n    other(i)",
            ["keep", "other"],
            "i = 0\na = 1\nb = 3\nkeep(i, a, b)\nother(i)",
        ),
        ("for a, b in zip([f], g):\n    keep(a, b)", ["keep", "for"], "a = f\nfor b in g:\n    keep(a, b)"),
        ("for a in (f(1), g(1)):\n    keep(a)\n    h(a)", ["f(1)", "g(1)", "keep"], "a = f(1)\nkeep(a)\na = g(1)"),
        (
            "keep([f(b) for a, b in {'c': g(), 'd': h()}.items()])",
            ["keep", "f(g())", "f(h())"],
            "keep([f(g()), f(h())])",
        ),
        ("keep([f(a) for a in (1, 2) if a])", ["keep", "if"], "keep([f(a) for a in (1, 2) if a])"),
        (
            "for a, b in {'c': 1}.items():\n    keep(a, b)",
            ["keep", "= "],
            "a = 'c'\nb = 1\nkeep(a, b)",
        ),
        ("if keep(x):\n    pass\nelse:\n    f()", ["keep", "f"], "keep(x)\nf()"),
        (
            "layers = [make() for i in range(3)]\nkeep(layers[2], get('body.layers.2'))",
            ["keep", "layers[0]", "layers.0"],
            "layers = [make()]\nkeep(layers[0], get('body.layers.0'))",
        ),
        (
            "keep([f(i, n) for i, n in enumerate(names)])",
            ["keep", "f("],
            "keep([f(0, next(iter(names)))])",
        ),
        (
            "keep([f(n) for i, n in enumerate(iterable=x)])",
            ["keep", "f("],
            "enumerate(iterable=x)",
        ),
        (
            "for i, n in enumerate(iterable=x):\n    keep(n)",
            ["keep(n)"],
            "in enumerate(iterable=x)",
        ),
        (
            "for a, b in enumerate(c[a:]):\n    continue\nkeep(1)",
            ["keep", "enumerate"],
            "keep(1)",
        ),
        (
            "class A:\n    def __enter__(self):\n        first()\n    def __exit__(self, *problem):\n"
            "        return False\nwith A():\n    keep()",
            ["keep", "first()", "A()"],
            "A().__enter__()\nkeep()",
        ),
        (
            "rules = [f, g]\nfor rule in rules:\n    keep(rule(1))",
            ["f(1)", "g(1)"],
            "keep(f(1))\nkeep(g(1))",
        ),
        ("keep([f(i) for i in [g, 2]])", ["keep", "f("], "keep([f(g)])"),
        (
            "try:\n    a = f()\n    b = g(a)\n    keep(b)\nexcept ValueError:\n    pass",
            ["try", "g(a)"],
            "a = f()\nb = g(a)\ntry:\n    keep(b)",
        ),
        ("w = [f()]\nfor d in w:\n    keep(d(1))", ["keep", "f()"], "w = f()\nkeep(w(1))"),
        ("keep([f() for a in 'abc'])", ["keep", "f()"], "keep([f()])"),
        ("y = 1\nif a in b:\n    y = f()\nkeep(y)", ["keep", "a in b", "y * "], "y = 1\ny = y * (a in b)\nkeep(y)"),
        (
            "if a in b:\n    y = f()\nelse:\n    y = g()\nkeep(y)",
            ["keep", "a in b", "* "],
            "y = g() * (a in b)\nkeep(y)",
        ),
        ("if a in b:\n    y += f()\nkeep(y)", ["keep", "a in b"], "y += a in b\nkeep(y)"),
        (
            "def f():\n    if a in b:\n        return g()\n    return 1\nkeep(f())",
            ["keep", "in b", "* "],
            "def f():\n    return 1 * (a in b)\nkeep",
        ),
        (
            "for a in [f(i) for i in range(3)]:\n    keep(a)",
            ["keep", "for", "range", "f(i)"],
            "for i in range(3):\n    a = f(i)\n    keep(a)",
        ),
        (
            "for i in range(2):\n    def f():\n        return g()\n    keep(f())",
            ["keep", "for", "g()"],
            "def f():\n    return g()\nfor i in range(2):\n    keep(f())",
        ),
    ],
)
def test_blocks_give_way(program: str, words: list[str], left: str) -> None:
    assert left in after("unwrap_blocks", program, *words)


def test_a_loop_over_parameters_gives_way_to_one_iteration_on_each_by_name() -> None:
    program = """
class N(Module):
    def __init__(self):
        self.v = Parameter(1)
        self.w = Parameter(2)
n = N()
for p in n.parameters():
    keep(p)
"""
    text = after("unwrap_blocks", program, "keep", "n.w")
    assert text.endswith("p = n.w\nkeep(p)")
