"""The next question of one edge, as a pure function of what was answered.

Everything here looks in one direction: the known bad build (the anchor) above, the good ones sought below it. The
search for a fix hands over its positions turned round (``search``), so nothing is written twice.

The way: ask the good end if one was given; with no good build known go down in growing steps; from the lowest end on
treat what lies below as a range whose good end is open; then halve the range until no unasked build is left in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import Status
from torchbisect.bisect.search.midpoints import choose, trailing_zeros

#: So many untestable builds are asked in one growing step before the next, larger one is taken.
_TRIES = 2


@dataclass(frozen=True)
class Manner:
    """How a search chooses, apart from what it knows.

    Attributes:
        rank: a number for a position that does not depend on the list's ends.
        cached: whether asking a position costs no install.
        first_step: the length of the first growing step, in builds.
        patience: so many untestable builds in one range are asked before those that lie between untestable ones are
            left unasked, and listed as such.
    """

    rank: Callable[[int], int]
    cached: Callable[[int], bool]
    first_step: int = 1
    patience: int = 6


@dataclass(frozen=True)
class Range:
    """The evidence round an edge: ``low`` is the last good position, -1 while none is known; ``high`` the first bad."""

    low: int
    high: int

    @property
    def inside(self) -> range:
        """The positions strictly between the ends."""
        return range(self.low + 1, self.high)


def bracket(answers: Mapping[int, Status], anchor: int) -> Range:
    """The narrowest range below ``anchor`` that the answers prove."""
    low = max((p for p, status in answers.items() if status is Status.GOOD and p < anchor), default=-1)
    high = min(p for p, status in answers.items() if status is Status.BAD and p > low)
    return Range(low, high)


def next_question(
    answers: Mapping[int, Status], anchor: int, good: int | None, manner: Manner, slack: int
) -> int | None:
    """The position to ask next, or ``None`` when the edge is as narrow as the builds allow.

    Args:
        answers: what is known, by position.
        anchor: the position of a build known to be bad.
        good: the position the user named as good, below the anchor.
        manner: how to choose.
        slack: how many answers more than the least the range may cost.
    """
    if good is not None and good not in answers:
        return good
    known = bracket(answers, anchor)
    if known.low < 0:
        origin = anchor if good is None else good
        step = growing(origin, 0, answers, manner, lambda low, high: any(p <= high for p in _bad(answers)))
        if step is not None:
            return step
        if 0 not in answers:
            return 0
    unasked = open_questions(answers, known, manner.patience)
    if not unasked:
        return None
    in_vain = [p for p in known.inside if p in answers]
    return choose(unasked, in_vain, rank=manner.rank, cached=manner.cached, slack=slack)


def open_questions(answers: Mapping[int, Status], known: Range, patience: int) -> list[int]:
    """The positions of a range that are still worth a question, ascending."""
    unasked = [p for p in known.inside if p not in answers]
    in_vain = [p for p in known.inside if p in answers]
    if len(in_vain) < patience:
        return unasked
    # Builds between untestable ones are left alone by now; those next to a testable end are still asked, since an
    # answer there makes the range smaller whatever lies in its middle.
    first = -1 if known.low < 0 else in_vain[0]
    return [p for p in unasked if not first < p < in_vain[-1]]


def growing(
    origin: int,
    floor: int,
    answers: Mapping[int, Status],
    manner: Manner,
    settled: Callable[[int, int], bool],
) -> int | None:
    """The next of the growing steps down from ``origin``, or ``None`` once the next would reach ``floor``.

    Each step is a window twice as wide as the one before; in a window of 2**k numbers just one is a multiple of 2**k,
    and that one is asked, so that steps from different origins meet. A window is over when ``settled`` says so for its
    ends, or when what was asked in it was untestable ``_TRIES`` times.
    """
    for low, high in _windows(origin, floor, manner.first_step):
        if settled(low, high):
            continue
        unasked = [p for p in range(low, high + 1) if p not in answers]
        in_vain = [p for p in range(low, high + 1) if answers.get(p) is Status.UNTESTABLE]
        if not unasked or len(in_vain) >= _TRIES:
            continue
        if in_vain:
            return max(unasked, key=lambda p: (min(abs(p - q) for q in in_vain), p))
        ready = [p for p in unasked if manner.cached(p)]
        return max(ready or unasked, key=lambda p: (trailing_zeros(manner.rank(p)), p))
    return None


def _windows(origin: int, floor: int, first_step: int) -> Iterator[tuple[int, int]]:
    """The windows below ``origin`` that lie wholly above ``floor``, nearest first."""
    distance = first_step
    while origin - 2 * distance + 1 > floor:
        yield origin - 2 * distance + 1, origin - distance
        distance *= 2


def _bad(answers: Mapping[int, Status]) -> Iterator[int]:
    return (p for p, status in answers.items() if status is Status.BAD)
