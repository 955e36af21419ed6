"""Compare printed output line by line: numbers with a tolerance, addresses and names of autograd's nodes not at all."""

from __future__ import annotations

import math
import re
from typing import List, Optional, Tuple

from .tolerance import numbers_differ

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_WORD = re.compile(r"[\w.]+")
# A tensor whose last line would be too long for its node's name is printed with that name on a line of its own.
_BEFORE_NODE = re.compile(r",\s+(?=grad_fn=<)")
# The group in the lookahead is tried once: a shorter number is followed by a part of itself, so it never fits.
_NUMBER = re.compile(r"(?<![\w.])(?=([-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?))\1(?![\w.]*\w)")
RELATIVE_TOLERANCE = 1e-3
MAX_LINES = 2000


def different_lines(eager: str, compiled: str, reference: Optional[str]) -> List[Tuple[int, str, str]]:
    """Return the lines that differ: number from 0, eager line, compiled line; a missing line is empty."""
    left, right, third = (_without_nodes(text).splitlines()[:MAX_LINES] for text in (eager, compiled, reference or ""))
    found = []
    for number in range(max(len(left), len(right))):
        a = left[number] if number < len(left) else ""
        b = right[number] if number < len(right) else ""
        r = third[number] if number < len(third) else None
        if number >= min(len(left), len(right)) or lines_differ(a, b, r):
            found.append((number, a, b))
    return found


def _without_nodes(text: str) -> str:
    """Return a text with one name for all of autograd's nodes: those of compiled code are its own."""
    return _WORD.sub(
        lambda word: "Backward" if word[0].rstrip("0123456789").endswith("Backward") else word[0],
        _BEFORE_NODE.sub(", ", text),
    )


def lines_differ(eager: str, compiled: str, reference: Optional[str] = None) -> bool:
    """Return True if two lines differ in more than addresses and floating-point noise."""
    if eager == compiled:
        return False
    eager, compiled = _ADDRESS.sub("0x", eager), _ADDRESS.sub("0x", compiled)
    if _without_numbers(eager) != _without_numbers(compiled):
        return True
    pairs = list(zip(_NUMBER.findall(eager), _NUMBER.findall(compiled)))
    references = _NUMBER.findall(_ADDRESS.sub("0x", reference)) if reference is not None else []
    for index, (a, b) in enumerate(pairs):
        third = references[index] if len(references) == len(pairs) else None
        if not _is_close(a, b, third):
            return True
    return False


def _without_numbers(line: str) -> str:
    """Return the line without numbers and blanks; widths and signs change with a number, so blanks are removed too."""
    return "".join(_NUMBER.sub("#", line).split())


def _last_place(text: str) -> float:
    """Return the value of one unit in the last printed place of a number."""
    mantissa, _, exponent = text.lower().partition("e")
    if mantissa.endswith("."):
        return 0.0  # torch prints a float that is a whole number this way
    places = len(mantissa.partition(".")[2])
    return float("1e{}".format(int(exponent[:6] or 0) - places))  # a power would overflow


def _is_whole(text: str) -> bool:
    return not any(mark in text for mark in ".eE")


def _is_close(eager: str, compiled: str, reference: Optional[str]) -> bool:
    if eager == compiled:
        return True
    if _is_whole(eager) and _is_whole(compiled):
        return False
    x, y = float(eager), float(compiled)
    if not (math.isfinite(x) and math.isfinite(y)):
        return False  # larger than a float can be
    if abs(x - y) <= max(RELATIVE_TOLERANCE * abs(x), 1.5 * max(_last_place(eager), _last_place(compiled))):
        return True
    return reference is not None and not numbers_differ(x, y, float(reference))
