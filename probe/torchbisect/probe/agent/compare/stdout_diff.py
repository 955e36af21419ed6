"""Printed output, compared line by line: numbers with a tolerance, addresses not at all."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from .tolerance import numbers_differ

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.]*\w)")
RELATIVE = 1e-3
MOST_LINES = 2000


def different_lines(eager: str, compiled: str, reference: Optional[str]) -> List[Tuple[int, str, str]]:
    """The lines that differ, by number from 0, with both sides; a missing line is empty."""
    left, right = (text.splitlines()[:MOST_LINES] for text in (eager, compiled))
    third = reference.splitlines()[:MOST_LINES] if reference is not None else []
    found = []
    for number in range(max(len(left), len(right))):
        a = left[number] if number < len(left) else ""
        b = right[number] if number < len(right) else ""
        r = third[number] if number < len(third) else None
        if number >= min(len(left), len(right)) or lines_differ(a, b, r):
            found.append((number, a, b))
    return found


def lines_differ(eager: str, compiled: str, reference: Optional[str] = None) -> bool:
    """Whether two lines differ in more than addresses and the noise of floating point."""
    if eager == compiled:
        return False
    eager, compiled = _ADDRESS.sub("0x", eager), _ADDRESS.sub("0x", compiled)
    if _skeleton(eager) != _skeleton(compiled):
        return True
    pairs = list(zip(_NUMBER.findall(eager), _NUMBER.findall(compiled)))
    thirds = _NUMBER.findall(_ADDRESS.sub("0x", reference)) if reference is not None else []
    for index, (a, b) in enumerate(pairs):
        third = thirds[index] if len(thirds) == len(pairs) else None
        if not _near(a, b, third):
            return True
    return False


def _skeleton(line: str) -> str:
    """The line without its numbers; widths and signs change with a number, so blanks go too."""
    return "".join(_NUMBER.sub("#", line).split())


def _unit(text: str) -> float:
    """One unit in the last printed place."""
    mantissa, _, exponent = text.lower().partition("e")
    if mantissa.endswith("."):
        return 0.0  # how torch prints a float that is a whole number
    places = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - places))


def _is_whole(text: str) -> bool:
    return not any(mark in text for mark in ".eE")


def _near(a: str, b: str, third: Optional[str]) -> bool:
    if a == b:
        return True
    if _is_whole(a) and _is_whole(b):
        return False
    x, y = float(a), float(b)
    if abs(x - y) <= max(RELATIVE * abs(x), 1.5 * max(_unit(a), _unit(b))):
        return True
    return third is not None and not numbers_differ(x, y, float(third))
