"""Choose the next build to ask for one boundary, as a pure function of the answers.

All functions look in one direction: from a known bad build (the anchor) down to the good builds. For a fix the caller
(``boundary_search``) mirrors the positions, so nothing is written twice.

The steps are: ask the good end, if the user named one. Without a good build go down in growing steps. From the oldest
build on, treat the range below the anchor as one whose good end is open. Then halve the range until no unasked build
is left in it.

The midpoints of a range are chosen so that different searches share them.
A range of ``m`` unasked builds needs ``ceil(log2(m + 1))`` answers, which is ``m.bit_length()``. The midpoint is the
build whose number has the most trailing zero bits, outside of the range's outer eighths. It does not depend on the
ends of the range, so all searches nearby ask the same few builds, which are in the cache after the first search (as
in rust-lang/cargo-bisect-rustc#372).

This costs at most one answer more than the true middle, once in a search. One end of all later ranges is such a
number. In a range of ``m`` builds beside it the next midpoint is a multiple of 2**k with 2**k <= m < 2**(k+1), which
leaves fewer than 2**k builds on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import BuildStatus

#: After this many untestable builds in one growing step, the next, larger step is taken.
_TRIES_IN_A_STEP = 2


@dataclass(frozen=True)
class Preferences:
    """Rules for the choice among positions that are equally informative.

    Attributes:
        rank: a number for a position that does not depend on the ends of the list, such as a date's ordinal.
        cached: true for a position that needs no install.
        first_step: the length of the first growing step, in builds.
        patience: after this many untestable builds in one range, builds between untestable ones are not asked.
    """

    rank: Callable[[int], int]
    cached: Callable[[int], bool]
    first_step: int = 1
    patience: int = 6


@dataclass(frozen=True)
class Range:
    """The last good position, -1 while none is known, and the first bad position."""

    low: int
    high: int

    @property
    def inside(self) -> range:
        """The positions strictly between the ends."""
        return range(self.low + 1, self.high)


def narrowest_range(answers: Mapping[int, BuildStatus], anchor: int) -> Range:
    """Return the narrowest range below ``anchor`` that the answers prove."""
    low = max((p for p, status in answers.items() if status is BuildStatus.GOOD and p < anchor), default=-1)
    high = min(p for p, status in answers.items() if status is BuildStatus.BAD and p > low)
    return Range(low, high)


def next_position(
    answers: Mapping[int, BuildStatus], anchor: int, good: int | None, preferences: Preferences, slack: int
) -> int | None:
    """Return the position to ask next, or ``None`` if the boundary is as narrow as the builds allow.

    Args:
        answers: the known answers, by position.
        anchor: the position of a build known to be bad.
        good: the position that the user named as good, below the anchor.
        preferences: the rules of choice.
        slack: the number of answers that the range may cost above the minimum.
    """
    if good is not None and good not in answers:
        return good
    known = narrowest_range(answers, anchor)
    if known.low < 0:
        bad = [p for p, status in answers.items() if status is BuildStatus.BAD]
        origin = anchor if good is None else good
        step = growing_step(origin, 0, answers, preferences, lambda low, high: any(p <= high for p in bad))
        if step is not None:
            return step
        if 0 not in answers:
            return 0
    unasked = positions_left(answers, known, preferences.patience)
    if not unasked:
        return None
    untestable = [p for p in known.inside if p in answers]
    return choose(unasked, untestable, rank=preferences.rank, cached=preferences.cached, slack=slack)


def positions_left(answers: Mapping[int, BuildStatus], known: Range, patience: int) -> list[int]:
    """Return the positions of a range that are still worth a question, ascending."""
    unasked = [p for p in known.inside if p not in answers]
    untestable = [p for p in known.inside if p in answers]
    if len(untestable) < patience:
        return unasked
    # Builds between untestable ones are left alone now. Builds next to a testable end are still asked, since an answer
    # there narrows the range whatever its middle holds.
    first = -1 if known.low < 0 else untestable[0]
    return [p for p in unasked if not first < p < untestable[-1]]


def growing_step(
    origin: int,
    floor: int,
    answers: Mapping[int, BuildStatus],
    preferences: Preferences,
    settled: Callable[[int, int], bool],
) -> int | None:
    """Return the next of the growing steps down from ``origin``, or ``None`` once the next would reach ``floor``.

    Each step is a window twice as wide as the one before. A window of 2**k numbers holds exactly one multiple of 2**k,
    which is the one asked; so steps from different origins ask the same builds. A window is over when ``settled`` says
    so for its ends, or after ``_TRIES_IN_A_STEP`` untestable builds in it.
    """
    for low, high in _windows(origin, floor, preferences.first_step):
        if settled(low, high):
            continue
        unasked = [p for p in range(low, high + 1) if p not in answers]
        untestable = [p for p in range(low, high + 1) if answers.get(p) is BuildStatus.UNTESTABLE]
        if not unasked or len(untestable) >= _TRIES_IN_A_STEP:
            continue
        if untestable:
            return max(unasked, key=lambda p: (min(abs(p - q) for q in untestable), p))
        ready = [p for p in unasked if preferences.cached(p)]
        return max(ready or unasked, key=lambda p: (trailing_zeros(preferences.rank(p)), p))
    return None


def _windows(origin: int, floor: int, first_step: int) -> Iterator[tuple[int, int]]:
    """Yield the windows below ``origin`` that lie wholly above ``floor``, nearest first."""
    distance = first_step
    while origin - 2 * distance + 1 > floor:
        yield origin - 2 * distance + 1, origin - distance
        distance *= 2


#: A midpoint leaves at least one in this many builds on each side. An answer that excludes fewer builds is not worth a
#: run, even in a cached environment.
_SMALLEST_SHARE = 8

#: Probability that the direct neighbor of an untestable build is untestable too; a power of it for longer distances.
#: Broken nightlies come in runs of a few days.
_UNTESTABLE_NEIGHBOR = 0.6


def answers_needed(candidates: int) -> int:
    """Return the number of answers that a range with this many unasked builds needs at most."""
    return candidates.bit_length()


def trailing_zeros(number: int) -> int:
    """Return the number of trailing zero bits; 64 for 0, as more than any other number has."""
    return (number & -number).bit_length() - 1 if number else 64


def choose(
    candidates: Sequence[int],
    untestable: Collection[int] = (),
    *,
    rank: Callable[[int], int] = lambda position: position,
    cached: Callable[[int], bool] = lambda _: False,
    slack: int = 0,
) -> int:
    """Return the position to ask next among ``candidates``, which are unasked, ascending and not none.

    ``untestable`` are the positions of the same range that were asked and are untestable. ``slack`` is the number of
    answers that the range may cost above the minimum.
    """
    total = len(candidates)
    allowed = answers_needed(total) + slack
    feasible = [i for i in range(total) if 1 + answers_needed(max(i, total - 1 - i)) <= allowed]
    if untestable:
        return candidates[_most_informative(candidates, feasible, sorted(untestable), rank)]
    inner = [i for i in feasible if min(i, total - 1 - i) >= (total - 1) // _SMALLEST_SHARE]
    ready = [i for i in inner if cached(candidates[i])]
    if ready:
        return candidates[max(ready, key=lambda i: (min(i, total - 1 - i), -i))]
    return candidates[max(inner, key=lambda i: (trailing_zeros(rank(candidates[i])), min(i, total - 1 - i), -i))]


def _most_informative(
    candidates: Sequence[int], feasible: Sequence[int], untestable: Sequence[int], rank: Callable[[int], int]
) -> int:
    """Return the index with the most expected information; near untestable builds an answer is less likely."""

    def expected(i: int) -> tuple[float, int, int]:
        distance = min(abs(candidates[i] - position) for position in untestable)
        share = (i + 1) / (len(candidates) + 1)
        information = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
        return round(information * (1 - _UNTESTABLE_NEIGHBOR**distance), 12), trailing_zeros(rank(candidates[i])), -i

    return max(feasible, key=expected)
