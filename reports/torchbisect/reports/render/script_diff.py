"""The original script and the minimal one beside each other: what of the first is left, and what was written anew."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from torchbisect.reports.escape import clean


@dataclass(frozen=True)
class Line:
    """A line of a script with its number from 1; ``changed``: it isn't in the other script."""

    number: int
    text: str
    changed: bool


def side_by_side(original: str, minimal: str, limit: int = 5000) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """The lines of both scripts, with those marked that the other has not; of each at most ``limit`` lines.

    Lines are matched by their text without indentation, as unwrapping a block changes that of every line in it.
    """
    left = clean(original).rstrip("\n").split("\n")[:limit]
    right = clean(minimal).rstrip("\n").split("\n")[:limit]
    # Blank lines join what matches and never make a match: a script has more of them than of anything else.
    matcher = difflib.SequenceMatcher(lambda line: not line, _keys(left), _keys(right), autojunk=False)
    kept_left: set[int] = set()
    kept_right: set[int] = set()
    for block in matcher.get_matching_blocks():
        kept_left.update(range(block.a, block.a + block.size))
        kept_right.update(range(block.b, block.b + block.size))
    return _lines(left, kept_left), _lines(right, kept_right)


def _keys(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines]


def _lines(lines: list[str], kept: set[int]) -> tuple[Line, ...]:
    return tuple(Line(number + 1, line, number not in kept and bool(line.strip())) for number, line in enumerate(lines))
