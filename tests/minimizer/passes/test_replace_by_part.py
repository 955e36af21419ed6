"""Statements and expressions give way to their parts."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("step", "program", "words", "left"),
    [
        ("replace_by_part.blocks", "with open(p) as f:\n    for i in range(3):\n        keep()", ["keep"], "keep()"),
        ("replace_by_part.blocks", "a, b = (f(), g())\nkeep(a)", ["keep", "f()\n"], "a = f()\nb = g()\nkeep(a)"),
        (
            "replace_by_part.blocks",
            "for i, (a, b) in enumerate(zip((1, 2), (3,))):\n    keep(i, a, b)\n    other(i)",
            ["keep", "other"],
            "keep(0, 1, 3)\nother(0)",
        ),
        ("replace_by_part.blocks", "if keep(x):\n    pass\nelse:\n    f()", ["keep", "f"], "keep(x)\nf()"),
        ("replace_by_part.expressions", "keep(torch.relu(x.view(2) @ w) + 1)", ["keep", "w"], "keep(w)"),
        ("replace_by_part.expressions", "keep(x * torch.relu(y))", ["keep", "x *"], "keep(x * 2)"),
        ("replace_by_part.expressions", "keep(torch.relu(y) - x)", ["keep", "x -"], "keep(x - 2)"),
        ("replace_by_part.expressions", "y = torch.sigmoid(x)\ny.detach_()", ["x ", "y.detach_()"], "y = x * 1\n"),
        ("replace_by_part.expressions", "y = x.sigmoid(dim=1)\ny.detach_()", ["x ", "y.detach_()"], "y = x * 1\n"),
        ("replace_by_part.expressions", "keep(x if y.grad else z())", ["keep", "*", "y.grad"], "keep(y.grad * 2)"),
        (
            "replace_by_part.blocks",
            "layers = [make() for i in range(3)]\nkeep(layers[2], get('body.layers.2'))",
            ["keep", "layers[0]", "layers.0"],
            "layers = [make()]\nkeep(layers[0], get('body.layers.0'))",
        ),
        (
            "replace_by_part.blocks",
            "keep([f(i, n) for i, n in enumerate(names)])",
            ["keep", "f("],
            "keep([f(0, next(iter(names)))])",
        ),
        (
            "replace_by_part.blocks",
            "keep([f(n) for i, n in enumerate(iterable=x)])",
            ["keep", "f("],
            "enumerate(iterable=x)",
        ),
        (
            "replace_by_part.blocks",
            "for i, n in enumerate(iterable=x):\n    keep(n)",
            ["keep(n)"],
            "in enumerate(iterable=x)",
        ),
        (
            "replace_by_part.blocks",
            "for a, b in enumerate(c[a:]):\n    continue\nkeep(1)",
            ["keep", "enumerate"],
            "keep(1)",
        ),
        (
            "replace_by_part.blocks",
            "class A:\n    def __enter__(self):\n        first()\n    def __exit__(self, *problem):\n"
            "        return False\nwith A():\n    keep()",
            ["keep", "first()", "A()"],
            "A().__enter__()\nkeep()",
        ),
        (
            "replace_by_part.blocks",
            "rules = [f, g]\nfor rule in rules:\n    keep(rule(1))",
            ["f(1)", "g(1)"],
            "keep(f(1))\nkeep(g(1))",
        ),
        ("replace_by_part.blocks", "keep([f(i) for i in [g, 2]])", ["keep", "f("], "keep([f(g)])"),
        (
            "replace_by_part.blocks",
            "try:\n    a = f()\n    b = g(a)\n    keep(b)\nexcept ValueError:\n    pass",
            ["try", "g(a)"],
            "a = f()\nb = g(a)\ntry:\n    keep(b)",
        ),
        ("replace_by_part.blocks", "w = [f()]\nfor d in w:\n    keep(d(1))", ["keep", "f()"], "w = f()\nkeep(w(1))"),
        ("replace_by_part.blocks", "keep([f() for a in 'abc'])", ["keep", "f()"], "keep([f()])"),
    ],
)
def test_blocks_and_expressions_give_way_to_their_parts(step: str, program: str, words: list[str], left: str) -> None:
    assert left in after(step, program, *words)


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
    text = after("replace_by_part.blocks", program, "keep", "n.w")
    assert text.endswith("p = n.w\nkeep(p)")


def test_an_item_of_an_iterator_gives_way_to_what_is_iterated() -> None:
    text = after("replace_by_part.expressions", "y = keep(next(iter(x)))", "keep(x)")
    assert text == "y = keep(x)"
