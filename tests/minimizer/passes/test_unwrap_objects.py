"""A value takes the place of an object that holds it."""

from __future__ import annotations

from pass_runner import after


def test_an_object_that_only_holds_a_value_gives_way_to_it() -> None:
    program = """
class Box(nn.Module):
    def __init__(self, item):
        super().__init__()
        self.item = item
boxes = [Box(f()), Box(Box(g()))]
keep(boxes[0].item, boxes[1].item.item)
"""
    text = after("unwrap_objects", program, "keep", "f()", "g()")
    assert text == "boxes = [f(), g()]\nkeep(boxes[0], boxes[1])"


def test_an_object_that_only_holds_what_it_makes_gives_way_to_that() -> None:
    program = """
class Table:
    def __init__(self, size=2):
        self.slots = make(size)
a, b = Table(), Table(3)
keep(a.slots, b.slots)
"""
    assert after("unwrap_objects", program, "keep", "make") == "a, b = (make(2), make(3))\nkeep(a, b)"


def test_an_object_of_one_field_gives_way_to_it() -> None:
    program = """
@dataclass
class Step:
    size: int = 3
for step in [Step(size=f()), Step(2), Step()]:
    keep(step.size)
"""
    assert after("unwrap_objects", program, "keep", "f()", "2", "3") == "for step in [f(), 2, 3]:\n    keep(step)"


def test_functions_return_the_value_that_is_read_from_the_object() -> None:
    program = """
class Weight:
    def __init__(self, value, unit):
        self.value, self.unit = value, unit
        self.amount = value * 2
    def __add__(self, other):
        return Weight(self.amount + 1, unit="kg")
class Capped(Weight):
    def __init__(self, cap=4):
        super().__init__(cap, "1")
    def __radd__(self, other):
        return Capped()
keep((a + b).amount, a.amount, c().other)
"""
    text = after("unwrap_objects", program, "keep(", "class", "__add__", "__radd__", "self.amount = ")
    assert "return (self.amount + 1) * 2" in text
    assert "return 4 * 2" in text
    assert "keep(a + b, a.amount, c().other)" in text
