"""Choice of the next build in a range: midpoints that different searches share.

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
from collections.abc import Callable, Collection, Sequence

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
    """Return the position to ask next.

    Args:
        candidates: the unasked positions, ascending; not empty.
        untestable: the positions of the same range that were asked and are untestable.
        rank: a number for a position that does not depend on the ends of the list, such as a date's ordinal.
        cached: true for a position that needs no install.
        slack: the number of answers that the range may cost above the minimum.
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
