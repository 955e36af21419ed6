"""Expressions that the text decides are evaluated."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("class C:\n    n: int = 4\nkeep(C().n, [a, b][0] if True else c)", ["keep"], "keep(4, a)"),
        (
            "class N(Module):\n    def __init__(self):\n        super().__init__()\n        self.w = Parameter(1)\n"
            "    def forward(self):\n        return 1\nn = N()\n"
            "a, p = next(n.named_parameters())\nkeep(p, next(iter(n.parameters())))",
            ["keep"],
            "a, p = ('w', n.w)\nkeep(p, n.w)",
        ),
        (
            "keep(dict(m.named_modules())['body.layers.1'], next(iter({'a': 'b'}.items())))",
            ["keep"],
            "keep(m.body.layers[1], ('a', 'b'))",
        ),
        ("keep(1, *(a, b))", ["keep"], "keep(1, a, b)"),
        ("keep(getattr(a, 'forward')(x))", ["keep"], "keep(a.forward(x))"),
        ("class A:\n    names: tuple = ('a', 'b')\nkeep(A().names)", ["keep"], "keep(('a', 'b'))"),
        ("class C(NamedTuple):\n    a: int\n    b: int\nkeep(C(1, b=f()).b, C(a, 2).a)", ["keep"], "keep(f(), a)"),
        ("a = [f, g]\nkeep(next(iter(a))(1), a)", ["keep"], "keep(f(1), a)"),
        ("keep(functools.partial(f, 1, b=2)(3, b=4, c=5))", ["keep"], "keep(f(1, 3, b=4, c=5))"),
        ("o = argparse.Namespace(rate=3, n='a')\nkeep(o.rate, o.n, o.m)", ["keep"], "keep(3, 'a', o.m)"),
    ],
)
def test_what_the_text_decides_is_evaluated(program: str, words: list[str], left: str) -> None:
    assert left in after("fold", program, *words)
