"""Names that nothing can have bound are found."""

from __future__ import annotations

import pytest

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.syntax.unbound_names import unbound_names


@pytest.mark.parametrize(
    ("program", "missing"),
    [
        ("x = y", {"y"}),
        ("def f():\n    return y\ny = 1\nf()", set()),
        ("for i in range(3):\n    if i:\n        print(last)\n    last = i", set()),
        ("print(x)\nx = 1", {"x"}),
        ("def f():\n    print(x)\n    x = 1", {"x"}),
        ("[a for a in b if (c := a)]\nc", {"b"}),
        ("fs = [lambda: a for a in range(3)]", set()),
        ("class A:\n    n = 1\n    def f(self):\n        return n", {"n"}),
        ("def f():\n    n = 1\n    def g():\n        nonlocal n\n        n += 1", set()),
        ("try:\n    pass\nexcept E as e:\n    e", {"E"}),
        ("match x:\n    case [a, *b, {'k': c, **d}]:\n        a, b, c, d", {"x"}),
        ("from m import *\nx", set()),
        ("x += 1", {"x"}),
        ("for i in range(3):\n    x += i", {"x"}),
        ("def f(run):\n    while run:\n        x += run()\n    return x", {"x"}),
        ("for i in range(3):\n    if i:\n        x += i\n    else:\n        x = 0", set()),
        ("import a.b as c, d.e\na, c, d", {"a"}),
    ],
)
def test_names_that_nothing_can_have_bound(program: str, missing: set[str]) -> None:
    assert unbound_names(parse_python(program)) == missing
