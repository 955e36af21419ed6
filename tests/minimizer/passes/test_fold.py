"""Expressions that the text decides are evaluated."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("class C:\n    n: int = 4\nkeep(C().n, [a, b][0] if True else c)", ["keep"], "keep(4, a)"),
        ("keep(next(iter({'a': 'b'}.items())))", ["keep"], "keep(('a', 'b'))"),
        (
            "try:\n    f()\n    raise E(1)\nexcept E as e:\n    keep(e)\nfinally:\n    g()",
            ["keep", "f", "g"],
            "f()\ne = E(1)\nkeep(e)\ng()",
        ),
        ("try:\n    raise E(1)\nexcept F as e:\n    keep(e)", ["keep"], "try:"),
        ("keep(1, *(a, b))", ["keep"], "keep(1, a, b)"),
        ("keep(getattr(a, 'forward')(x))", ["keep"], "keep(a.forward(x))"),
        ("class A:\n    names: tuple = ('a', 'b')\nkeep(A().names)", ["keep"], "keep(('a', 'b'))"),
        ("class C(NamedTuple):\n    a: int\n    b: int\nkeep(C(1, b=f()).b, C(a, 2).a)", ["keep"], "keep(f(), a)"),
        ("a = [f, g]\nkeep(next(iter(a))(1), a)", ["keep"], "keep(f(1), a)"),
        ("keep(dict([('a', b), c]))", ["keep"], "keep(dict([('a', b), c]))"),
        ("keep(dict([('a', b), ('c', d)]))", ["keep", "d"], "keep({'a': b, 'c': d})"),
        ("keep(nn.Sequential(OrderedDict([('a', b), ('c', d)])))", ["keep", "Seq", "d"], "keep(nn.Sequential(b, d))"),
        ("keep(nn.Sequential(collections.OrderedDict([('a', b)])))", ["keep", "Seq", "b"], "Sequential(b))"),
    ],
)
def test_what_the_text_decides_is_evaluated(program: str, words: list[str], left: str) -> None:
    assert left in after("fold", program, *words)
