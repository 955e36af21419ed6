"""Statements and their parts are deleted."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("step", "program", "words", "left"),
    [
        ("delete.statements", "a = 1\nb = 2\nif a:\n    c = 3\n    keep(b)\nd = 4", ["keep"], "b = 2\nif a:"),
        ("delete.decorators", "@register('f')\ndef f():\n    keep()", ["keep"], "def f():\n    keep()"),
        ("delete.decorators", "@torch.compile\n@seen\ndef f():\n    keep()", ["keep"], "@torch.compile\ndef f()"),
        ("delete.elements", "keep(a, c=[1, 2, {'k': 3}])", ["keep", "3"], "keep(a, c=[3])"),
        ("delete.optional_parts", "keep(a, b=1, c=[2])", ["keep", "2"], "keep(a, c=[2])"),
        (
            "delete.optional_parts",
            "match a:\n    case 1:\n        b()\n    case 2:\n        keep()\n    case _:\n        pass",
            ["case 2"],
            "match a:\n    case 2:\n        keep()",
        ),
        (
            "delete.optional_parts",
            "try:\n    f()\nexcept OSError:\n    a()\nexcept ValueError:\n    b()",
            ["ValueError"],
            "try:\n    f()\nexcept ValueError:\n    b()",
        ),
        ("delete.elements", "match a:\n    case [1, *b] | 2:\n        keep()", ["*b"], "case [*b]:"),
    ],
)
def test_statements_and_their_parts_are_deleted(step: str, program: str, words: list[str], left: str) -> None:
    assert left in after(step, program, *words)
