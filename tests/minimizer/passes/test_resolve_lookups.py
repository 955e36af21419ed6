"""Lookups by name give way to the objects that they find."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("lookup", "part"),
    [
        ("dict(m.named_modules())['body.layers.1']", "m.body.layers[1]"),
        ("dict(m.named_parameters())['w']", "m.w"),
        ("dict(m.named_modules())[name]", "dict(m.named_modules())[name]"),
        ("dict(m.items())['body']", "dict(m.items())['body']"),
    ],
)
def test_a_part_that_is_looked_up_by_its_path_becomes_an_attribute(lookup: str, part: str) -> None:
    assert after("resolve_lookups.paths", f"keep({lookup})", "keep") == f"keep({part})"


@pytest.mark.parametrize(
    ("lookup", "part"),
    [
        ("next(iter(m.named_parameters()))", "('w', m.w)"),
        ("next(m.parameters())", "m.w"),
        ("next(iter(m.items()))", "next(iter(m.items()))"),
    ],
)
def test_the_first_part_of_a_list_becomes_an_attribute(lookup: str, part: str) -> None:
    definition = "class M:\n\n    def __init__(self):\n        self.w = 1\nm = M()\n"
    text = after("resolve_lookups.first_parts", f"{definition}keep({lookup})", "keep", "self.w = 1", "m = M()")
    assert text == f"{definition}keep({part})"


def test_a_registered_function_takes_the_place_of_its_lookup() -> None:
    program = """
HOOKS = {}
def hook(name):
    def add(function):
        HOOKS[name] = function
        return function
    return add
@hook('one')
def one():
    return 1
@hook('two')
def two():
    return 2
keep(HOOKS['two']())
"""
    text = after("resolve_lookups.registered", program, "keep", "return 2")
    assert text.endswith("def two():\n    return 2\nkeep(two())")
