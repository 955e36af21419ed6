"""Which Python and which variant (cpu, cu126, ...) to search a range of nightlies with.

Both change over the years: variants come and go with CUDA's versions, Pythons with theirs. A verdict at one end and
one at the other compare only if both are of one pair; so a range is searched with one pair that has both ends, or else
is split, each part with its own pair, the parts sharing a day so that the verdicts join.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class PythonVariant:
    """A Python's tag (``cp312``) and a variant."""

    python: str
    variant: str

    def __str__(self) -> str:
        return f"{self.variant} for {self.python}"


@dataclass(frozen=True)
class RangePart:
    """A part of a range of days, both ends included, and the pair to search it with."""

    pair: PythonVariant
    first: datetime.date
    last: datetime.date


@dataclass(frozen=True)
class RangeSplit:
    """How a range is to be searched.

    Attributes:
        segments: oldest first; each begins with the day on which the one before ends. Empty if no pair has any of it.
        notice: what the reader must know: that the range is split, and which days no pair has.
    """

    segments: tuple[RangePart, ...]
    notice: str | None = None


def divide(
    first: datetime.date,
    last: datetime.date,
    offered: Mapping[PythonVariant, Sequence[datetime.date]],
    preferred: Sequence[PythonVariant],
) -> RangeSplit:
    """Cover the days from ``first`` to ``last`` with few pairs.

    Args:
        offered: the days that each pair has.
        preferred: the pairs that may be used, the most wanted first.

    Of the pairs that have a nightly on the day that was reached, the one that reaches furthest is taken; of equals the
    most wanted.
    """
    days = {
        pair: sorted(day for day in offered.get(pair, ()) if first <= day <= last) for pair in dict.fromkeys(preferred)
    }
    days = {pair: own for pair, own in days.items() if own}
    if not days:
        return RangeSplit((), f"none of {', '.join(map(str, preferred))} has a nightly between {first} and {last}")
    start = min(own[0] for own in days.values())
    end = max(own[-1] for own in days.values())
    segments: list[RangePart] = []
    gaps: list[str] = []
    here = start
    while True:
        # Only a day that both have joins two parts: the verdicts of two variants of different days don't compare.
        candidates = [pair for pair, own in days.items() if here in own]
        best = max(candidates, key=lambda pair: days[pair][-1])
        reach = days[best][-1]
        joint = _joint(days, best, here)
        if reach == end or joint is None:
            segments.append(RangePart(best, here, reach))
            later = [day for own in days.values() for day in own if day > reach]
            if not later:
                break
            gaps.append(f"{reach} to {min(later)}")
            here = min(later)
        else:
            segments.append(RangePart(best, here, joint))
            here = joint
    return RangeSplit(tuple(segments), _words(segments, gaps))


def _joint(
    days: Mapping[PythonVariant, Sequence[datetime.date]], pair: PythonVariant, here: datetime.date
) -> datetime.date | None:
    """The last day of a pair's on which another pair, which reaches further, has a nightly too."""
    reach = days[pair][-1]
    further = [own for own in days.values() if own[-1] > reach]
    shared = [day for day in days[pair] if day > here and any(day in own for own in further)]
    return max(shared, default=None)


def _words(segments: Sequence[RangePart], gaps: Sequence[str]) -> str | None:
    parts = []
    if len(segments) > 1:
        split = "; ".join(f"{segment.first} to {segment.last} {segment.pair}" for segment in segments)
        parts.append(f"no Python and variant has nightlies at both ends, so the range is split: {split}")
    if gaps:
        parts.append(f"between {', '.join(gaps)} nothing joins the parts")
    return "; ".join(parts) or None
