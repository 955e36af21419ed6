"""Lookups in registries give way to the registered functions."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        (
            "HOOKS = {}\ndef hook(name):\n    def add(function):\n        HOOKS[name] = function\n"
            "        return function\n    return add\n@hook('one')\ndef one():\n    return 1\n"
            "@hook('two')\ndef two():\n    return 2\n"
            "keep(HOOKS['two']())",
            ["keep", "return 2"],
            "def two():\n    return 2\nkeep(two())",
        ),
    ],
)
def test_a_lookup_gives_way_to_the_registered_function(program: str, words: list[str], left: str) -> None:
    assert left in after("registries", program, *words)
