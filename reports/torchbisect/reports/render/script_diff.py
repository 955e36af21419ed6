"""Mark the differences between the original script and the minimal one, for two columns."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from torchbisect.reports.escape import clean


@dataclass(frozen=True)
class ScriptLine:
    """A line of a script with its number from 1; ``changed`` says that the other script lacks it."""

    number: int
    text: str
    changed: bool


def side_by_side(
    original: str, minimal: str, limit: int = 5000
) -> tuple[tuple[ScriptLine, ...], tuple[ScriptLine, ...]]:
    """Return the lines of both scripts, each marked if the other script lacks it; at most ``limit`` lines of each.

    Lines match by their text without indentation, because unwrapping a block changes the indentation of its lines.
    """
    left = clean(original).rstrip("\n").split("\n")[:limit]
    right = clean(minimal).rstrip("\n").split("\n")[:limit]
    # Blank lines are junk: they extend a match but never start one, because a script has so many of them.
    matcher = difflib.SequenceMatcher(lambda line: not line, _keys(left), _keys(right), autojunk=False)
    kept_left: set[int] = set()
    kept_right: set[int] = set()
    for block in matcher.get_matching_blocks():
        kept_left.update(range(block.a, block.a + block.size))
        kept_right.update(range(block.b, block.b + block.size))
    return _lines(left, kept_left), _lines(right, kept_right)


def _keys(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines]


def _lines(lines: list[str], kept: set[int]) -> tuple[ScriptLine, ...]:
    return tuple(
        ScriptLine(number + 1, line, number not in kept and bool(line.strip())) for number, line in enumerate(lines)
    )
