"""Options of a search over builds, for reproducible and for flaky scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal

from torchbisect.bisect.search.evidence import BoundaryKind, T

#: The ends of a finished boundary that are asked a second time.
Recheck = Literal["none", "good", "both"]


@dataclass(frozen=True)
class SearchOptions(Generic[T]):
    """Options of ``find_boundaries``.

    Attributes:
        bad: the position of a build believed to be bad; if ``None``, one is looked for, from the newest build back.
        good: the position of a build believed to be good: older than ``bad`` for a regression, newer for a fix.
        ends_first: ask the bad and the good end before the builds between them. By default they are believed, and asked
            only where a boundary comes to lie beside them.
        kind: the boundaries to look for.
        cached: true for a build that needs no install. Such builds are preferred, at the cost of one question at most.
        rank: a number for a build that stays the same when the list grows, such as its date's ordinal; the position
            if ``None``.
        first_step: the first of the growing steps towards an unknown end, in builds.
        patience: after this many untestable builds in one range, builds between untestable ones are not asked.
        recheck: the ends of a finished boundary that are asked a second time, the good one last.
    """

    bad: int | None = None
    good: int | None = None
    ends_first: bool = False
    kind: BoundaryKind = BoundaryKind.BOTH
    cached: Callable[[T], bool] = lambda _: False
    rank: Callable[[T], int] | None = None
    first_step: int = 1
    patience: int = 6
    recheck: Recheck = "none"

    def check(self, builds: Sequence[Any]) -> None:
        """Raise ``ValueError`` for ends outside of the builds or on the wrong side of each other."""
        for end in (self.bad, self.good):
            if end is not None and not 0 <= end < len(builds):
                raise ValueError(f"position {end} is outside of the {len(builds)} builds")
        if self.bad is None or self.good is None:
            return
        if self.good == self.bad:
            raise ValueError("the good and the bad end are the same build")
        if self.kind is BoundaryKind.REGRESSION and self.good > self.bad:
            raise ValueError("the good end of a regression must be older than its bad end")
        if self.kind is BoundaryKind.FIX and self.good < self.bad:
            raise ValueError("the good end of a fix must be newer than its bad end")


@dataclass(frozen=True)
class FlakySearchOptions(Generic[T]):
    """Options of ``find_flaky_boundaries``.

    Attributes:
        bad: the position of a build that has shown the mismatch.
        good: the position of a build known not to have the bug, older (for a regression) or newer (for a fix).
        kind: the boundaries to look for.
        shown: the number of runs of the bad build that showed the mismatch, of ``runs`` measured before the search.
        runs: the number of these runs.
        confidence: the probability that each boundary must reach, from 0.5 to below 1.
        limit: the number of questions at most for each boundary; after it, the result is the range that is certain.
        cost: the cost of one question about a build; an install costs more than a run.
    """

    bad: int
    good: int | None = None
    kind: BoundaryKind = BoundaryKind.BOTH
    shown: int = 0
    runs: int = 0
    confidence: float = 0.95
    limit: int = 200
    cost: Callable[[T], float] = lambda _: 1.0

    def check(self, builds: Sequence[Any]) -> None:
        """Raise ``ValueError`` for ends outside of the builds or on the same build."""
        ends = [self.bad] if self.good is None else [self.bad, self.good]
        if not all(0 <= end < len(builds) for end in ends) or self.good == self.bad:
            raise ValueError("the bad and the good end must be two positions among the builds")
