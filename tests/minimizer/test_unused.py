"""Side effects of expressions are told from their text."""

from __future__ import annotations

import pytest

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.syntax.tree import expression, text_of
from torchbisect.minimizer.unused import may_have_side_effects, without_unused


@pytest.mark.parametrize(
    ("value", "acts"),
    [
        ("torch.ones(2) + math.sqrt(x.view(2).sum())", False),
        ("[len(a) for a in b]", False),
        ("nn.Linear(2, 3)", False),
        ("Config()", True),
        ("model.attach()", True),
        ("x.add_(1)", True),
        ("torch.manual_seed(1)", True),
        ("layer.register_forward_hook(f)", True),
        ("own.method()", True),
        ("(y := 1)", True),
        ("print(x)", True),
    ],
)
def test_side_effects_are_told_from_the_text(value: str, acts: bool) -> None:
    assert may_have_side_effects(expression(value), {"torch", "math", "nn"}, {"method"}) is acts


def test_a_name_of_something_else_is_read_where_it_is_changed_in_place() -> None:
    program = "def merge(own, more):\n    sink = own.bag\n    sink |= more\n    count = 0\n    count += 1\nmerge(a, b)"
    kept = "def merge(own, more):\n    sink = own.bag\n    sink |= more\nmerge(a, b)"
    assert text_of(without_unused(parse_python(program))) == kept


def test_a_value_that_is_added_to_stays_as_long_as_the_addition() -> None:
    program = "def total(run, rows):\n    count = 0\n    for row in rows:\n        count += run(row)\ntotal(a, b)"
    assert text_of(without_unused(parse_python(program), harmless=True)) == program
    assert "count" not in text_of(without_unused(parse_python(program)))
    other = "def total(run):\n    count = 0\n    def f():\n        count = 1\n        count += run()\n    f()\ntotal(a)"
    assert "    count = 0\n" not in text_of(without_unused(parse_python(other), harmless=True))


def test_annotations_of_fields_are_not_evaluated_from_then_on() -> None:
    head = "from __future__ import annotations\n"
    fields = head + "\nclass A(NamedTuple):\n    b: Later\nkeep(A(1).b)"
    assert text_of(without_unused(parse_python(fields))) == fields
    assert text_of(
        without_unused(parse_python(head + "def f(a: int) -> int:\n    b: int = a\n    return b\nf(1)"))
    ) == ("def f(a):\n    b = a\n    return b\nf(1)")


@pytest.mark.parametrize(
    ("block", "stays"),
    [
        ("with Guard():\n    a = 1 / b", True),
        ("with torch.no_grad():\n    a = f(b)", False),
        ("try:\n    a = b[3]\nexcept IndexError:\n    keep()", True),
        ("try:\n    a = b\nexcept IndexError:\n    keep()", False),
        ("try:\n    a = b[3]\nfinally:\n    keep()", False),
    ],
)
def test_what_may_raise_stays_where_that_is_caught(block: str, stays: bool) -> None:
    assert ("a = " in text_of(without_unused(parse_python(block)))) is stays


@pytest.mark.parametrize(("rest", "stays"), [("run(Task.registry)", True), ("run(Task)", True), ("run(Other)", False)])
def test_subclasses_of_which_their_base_takes_note_stay_while_the_base_is_used(rest: str, stays: bool) -> None:
    program = f"""
class Task:
    registry = []
    def __init_subclass__(cls):
        Task.registry.append(cls)
class Depth(Task):
    pass
class Sharp(Depth):
    pass
class Other:
    pass
{rest}
"""
    assert ("class Sharp(Depth)" in text_of(without_unused(parse_python(program)))) is stays


@pytest.mark.parametrize(
    ("read", "stays"),
    [("return locals()", True), ("return eval('a')", True), ("return locals(b)", False), ("return vars(b)", False)],
)
def test_a_function_may_read_its_names_by_none_of_them(read: str, stays: bool) -> None:
    program = f"def f(b):\n    a = 1\n    {read}\nc = 1\nf(2)"
    changed = text_of(without_unused(parse_python(program)))
    assert ("a = 1" in changed) is stays
    assert ("c = 1" in changed) is ("eval" in read)
    assert text_of(without_unused(parse_python("c = 1\nkeep(globals())"))) == "c = 1\nkeep(globals())"
