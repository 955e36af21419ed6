"""The Python and variant (cpu, cu126, ...) to search a range of nightlies with.

Both change over the years, as new versions of CUDA and Python replace old ones. Two verdicts compare only if their
builds have the same Python and variant. So a range is searched with one pair that has both ends. If there is none, it
is split into parts, each with its own pair; two neighboring parts share a day, so that their verdicts join.
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
    """The parts of a range.

    Attributes:
        parts: the parts, oldest first; each begins on the last day of the one before. Empty if no pair has any day.
        notice: what the reader must know: the parts, if there are several, and the days that no pair has.
    """

    parts: tuple[RangePart, ...]
    notice: str | None = None


def split_range(
    first: datetime.date,
    last: datetime.date,
    offered: Mapping[PythonVariant, Sequence[datetime.date]],
    preferred: Sequence[PythonVariant],
) -> RangeSplit:
    """Cover the days from ``first`` to ``last`` with few pairs.

    From the day reached so far, the pair that goes on furthest is taken; of equal ones the most preferred.

    Args:
        first: the first day.
        last: the last day.
        offered: the days that each pair has.
        preferred: the pairs that may be used, the most preferred first.
    """
    days = {
        pair: sorted(day for day in offered.get(pair, ()) if first <= day <= last) for pair in dict.fromkeys(preferred)
    }
    days = {pair: own for pair, own in days.items() if own}
    if not days:
        return RangeSplit((), f"none of {', '.join(map(str, preferred))} has a nightly between {first} and {last}")
    here = min(own[0] for own in days.values())
    end = max(own[-1] for own in days.values())
    parts: list[RangePart] = []
    gaps: list[str] = []
    while True:
        candidates = [pair for pair, own in days.items() if here in own]
        best = max(candidates, key=lambda pair: days[pair][-1])
        reach = days[best][-1]
        shared = _last_shared_day(days, best, here)
        if reach == end or shared is None:
            parts.append(RangePart(best, here, reach))
            later = [day for own in days.values() for day in own if day > reach]
            if not later:
                break
            gaps.append(f"{reach} to {min(later)}")
            here = min(later)
        else:
            parts.append(RangePart(best, here, shared))
            here = shared
    return RangeSplit(tuple(parts), _notice(parts, gaps))


def _last_shared_day(
    days: Mapping[PythonVariant, Sequence[datetime.date]], pair: PythonVariant, here: datetime.date
) -> datetime.date | None:
    """Return the last day after ``here`` that a pair shares with another pair that goes on further."""
    reach = days[pair][-1]
    further = [own for own in days.values() if own[-1] > reach]
    shared = [day for day in days[pair] if day > here and any(day in own for own in further)]
    return max(shared, default=None)


def _notice(parts: Sequence[RangePart], gaps: Sequence[str]) -> str | None:
    notices = []
    if len(parts) > 1:
        split = "; ".join(f"{part.first} to {part.last} {part.pair}" for part in parts)
        notices.append(f"no Python and variant has nightlies at both ends, so the range is split: {split}")
    if gaps:
        notices.append(f"between {', '.join(gaps)} nothing joins the parts")
    return "; ".join(notices) or None
