"""Which build to ask next in a range: the arithmetic of midpoints, with no memory and no I/O.

A range of ``m`` unasked builds needs ``ceil(log2(m + 1))`` answers, which is ``m.bit_length()``. The midpoint taken
here is the build whose number has the most trailing zero bits, the outer eighths left out. It does not depend on the
bounds, so every search of a neighbourhood meets the same few builds, which are then in the cache already (as in
rust-lang/cargo-bisect-rustc#372). Taking it costs one answer more than the true middle at the most, once in a search:
one end of all later ranges is such a number, and in a range of ``m`` beside a multiple of a larger power of two the
next midpoint is a multiple of 2**k with 2**k <= m < 2**(k+1), which leaves fewer than 2**k on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

#: A midpoint leaves at least one in so many of the range's builds on each side: an answer that tells next to nothing
#: is not worth even the run in an environment that is cached.
_SHARE = 8

#: How likely the direct neighbour of an untestable build is untestable too, as a factor for each step away. Broken
#: nightlies come in runs of a few days.
_CLINGING = 0.6


def answers_needed(candidates: int) -> int:
    """How many answers a range of so many unasked builds needs at the most."""
    return candidates.bit_length()


def trailing_zeros(number: int) -> int:
    """How often ``number`` can be halved; 0 can be halved for ever."""
    return (number & -number).bit_length() - 1 if number else 64


def choose(
    candidates: Sequence[int],
    untestable: Collection[int] = (),
    *,
    rank: Callable[[int], int] = lambda position: position,
    cached: Callable[[int], bool] = lambda _: False,
    slack: int = 0,
) -> int:
    """The position to ask next.

    Args:
        candidates: the unasked positions, ascending; not empty.
        untestable: the positions of the same range that were asked in vain.
        rank: a number for each position that stays the same whatever the list's ends, such as a date's ordinal.
        cached: whether a position costs no install.
        slack: how many answers more than the least the range may cost.
    """
    total = len(candidates)
    allowed = answers_needed(total) + slack
    feasible = [i for i in range(total) if 1 + answers_needed(max(i, total - 1 - i)) <= allowed]
    if untestable:
        return candidates[_away_from(candidates, feasible, sorted(untestable), rank)]
    inner = [i for i in feasible if min(i, total - 1 - i) >= (total - 1) // _SHARE]
    ready = [i for i in inner if cached(candidates[i])]
    if ready:
        return candidates[max(ready, key=lambda i: (min(i, total - 1 - i), -i))]
    return candidates[max(inner, key=lambda i: (trailing_zeros(rank(candidates[i])), min(i, total - 1 - i), -i))]


def _away_from(
    candidates: Sequence[int], feasible: Sequence[int], untestable: Sequence[int], rank: Callable[[int], int]
) -> int:
    """The index that promises the most information, counting that neighbours of untestable builds often are too."""

    def promise(i: int) -> tuple[float, int, int]:
        distance = min(abs(candidates[i] - position) for position in untestable)
        share = (i + 1) / (len(candidates) + 1)
        information = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
        return round(information * (1 - _CLINGING**distance), 12), trailing_zeros(rank(candidates[i])), -i

    return max(feasible, key=promise)
