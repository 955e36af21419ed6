"""Fields go together with what calls give for them."""

from __future__ import annotations

import pytest
from pass_runner import after

DATACLASS = "@dataclass\nclass A:\n    x: int\n    y: str = 'y'\n"
NAMED_TUPLE = "class A(NamedTuple):\n    x: int\n    y: str\n"


@pytest.mark.parametrize(
    ("program", "left"),
    [
        (DATACLASS + "keep(A(1, 'z').x)", "@dataclass\nclass A:\n    x: int\nkeep(A(1).x)"),
        (DATACLASS + "keep(A(x=1, y='z').x)", "@dataclass\nclass A:\n    x: int\nkeep(A(x=1).x)"),
        (DATACLASS + "keep(A(1).x)", "@dataclass\nclass A:\n    x: int\nkeep(A(1).x)"),
        (NAMED_TUPLE + "a = A(1, 2)\nb = A(3, 4)\nkeep(a.x, b.x)", "a = A(1)\nb = A(3)\nkeep(a.x, b.x)"),
        ("A = namedtuple('A', ['x', 'y'])\nkeep(A(1, 2).x)", "A = namedtuple('A', ['x'])\nkeep(A(1).x)"),
        ("keep(namedtuple('A', ('x', 'y'))(1, y=2).x)", "keep(namedtuple('A', ('x',))(1).x)"),
    ],
)
def test_a_field_that_is_not_read_goes(program: str, left: str) -> None:
    assert after("delete_fields", program, "keep", "x").replace("\n\n", "\n").endswith(left)


def test_a_field_that_is_read_stays() -> None:
    program = DATACLASS + "keep(A(1, 'z').x, a.y)"
    assert "'z'" in after("delete_fields", program, "keep", "x")


def test_a_field_that_is_only_carried_along_goes() -> None:
    program = (
        "class A:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n"
        "    def __add__(self, z):\n        return A(self.x + 1, self.y)\n"
        "class B(A):\n    pass\nkeep((A(1, 2) + B(3, 4)).x)"
    )
    text = after("delete_fields", program, "keep", ".x)")
    assert "self.y" not in text
    assert text.endswith("keep((A(1) + B(3)).x)")
