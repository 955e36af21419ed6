"""Count what a search may ask, by searching on paper for every place where the bug may have come or gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus, T
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions
from torchbisect.core.footprint import CPU, Footprint

#: The number of places that are tried for each boundary, at most. Of a longer list every second, third ... is tried.
_PLACES = 150


@dataclass(frozen=True)
class SearchPlan:
    """The cost of a search.

    Attributes:
        builds: the number of builds in the range.
        most: the most questions, if every build can be tested; the failing build is one.
        typical: the average number of questions over the places where the bug may have come and gone.
        installs: of the most questions, those in environments that are not installed yet.
        download: the bytes to fetch, at most.
        disk: the bytes of the environments, at most, if all are kept.
    """

    builds: int
    most: int
    typical: float
    installs: int
    download: int
    disk: int

    @property
    def summary(self) -> str:
        """The plan in one line."""
        return (
            f"{self.builds} builds: {self.typical:.0f} steps as a rule and {self.most} at the most, "
            f"up to {self.installs} installs, {_human(self.download)} to download and {_human(self.disk)} of disk; "
            "a build that can't be tested costs up to three steps more"
        )


def plan_search(
    builds: Sequence[T],
    options: SearchOptions[T],
    *,
    size: Footprint = CPU,
    wheel_size: Callable[[T], int | None] = lambda _: None,
) -> SearchPlan:
    """Calculate the cost of a search and of the failing build; nothing is asked or fetched.

    Args:
        builds: the builds, oldest first.
        options: those of the search; the newest build stands for ``bad`` if there is none.
        size: the size of a build where ``wheel_size`` does not know it.
        wheel_size: the bytes of a build's wheel, if the index says.
    """
    anchor = len(builds) - 1 if options.bad is None else options.bad
    questions: list[list[int]] = []
    costs: list[list[tuple[int, int]]] = []

    def cost(asked: Sequence[T]) -> tuple[int, int]:
        """Return the number of installs and the bytes of their wheels."""
        wanted = [build for build in asked if not options.cached(build)]
        return len(wanted), sum(wheel_size(build) or size.download for build in wanted)

    for kind, places in _places(options.kind, anchor, len(builds)):
        asked = [
            _asked_builds(builds, replace(options, bad=anchor, good=good, kind=kind), place)
            for good in [_good_end(options, kind, anchor)]
            for place in places
            if good is None or (good < place if kind is BoundaryKind.REGRESSION else place <= good)
        ]
        if asked:
            questions.append([len(one) for one in asked])
            costs.append([cost(one) for one in asked])
    failing = 1 if questions else 0
    anchor_count, anchor_wheels = cost([builds[anchor]] * failing)
    installs = anchor_count + sum(max(count for count, _ in boundary) for boundary in costs)
    download = anchor_wheels + sum(max(wheels for _, wheels in boundary) for boundary in costs)
    return SearchPlan(
        builds=len(builds),
        most=failing + sum(max(boundary) for boundary in questions),
        typical=failing + sum(sum(boundary) / len(boundary) for boundary in questions),
        installs=installs,
        download=download + (size.shared_download if installs else 0),
        disk=int(download * size.installed / size.download) + (size.shared_installed if installs else 0),
    )


def _good_end(options: SearchOptions[T], kind: BoundaryKind, anchor: int) -> int | None:
    """Return the named good end, if it belongs to this boundary."""
    good = options.good
    return good if good is not None and (good < anchor) is (kind is BoundaryKind.REGRESSION) else None


def _places(kind: BoundaryKind, anchor: int, size: int) -> list[tuple[BoundaryKind, range]]:
    """Return for each boundary the positions of the first build after it; 0: always bad, ``size``: never fixed."""
    places = {
        BoundaryKind.REGRESSION: range(0, anchor + 1, 1 + (anchor + 1) // _PLACES),
        BoundaryKind.FIX: range(anchor + 1, size + 1, 1 + (size - anchor) // _PLACES),
    }
    return [(one, where) for one, where in places.items() if kind in (one, BoundaryKind.BOTH)]


def _asked_builds(builds: Sequence[T], options: SearchOptions[T], place: int) -> list[T]:
    """Return the builds, the bad end aside, that a search would ask if its boundary were at ``place``."""
    cached, rank = options.cached, options.rank

    def ask(position: int) -> BuildAnswer:
        bad = position >= place if options.kind is BoundaryKind.REGRESSION else position < place
        return BuildAnswer(BuildStatus.BAD if bad else BuildStatus.GOOD)

    # The search runs over positions, as builds need not be ordered or hashable.
    by_position: SearchOptions[int] = SearchOptions(
        bad=options.bad,
        good=options.good,
        kind=options.kind,
        cached=lambda position: cached(builds[position]),
        rank=None if rank is None else lambda position: rank(builds[position]),
        first_step=options.first_step,
        patience=options.patience,
    )
    tested = find_boundaries(range(len(builds)), ask, by_position).tested
    return [builds[asked.item] for asked in tested if asked.item != options.bad]


def _human(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
