"""What a search will cost before it is begun: each place where the bug may have come or gone is tried on paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import Finding, Status, T, Which
from torchbisect.bisect.search.find import find as search

#: At most so many places are tried for each edge; of a longer list every second, third ... one.
_PLACES = 150


@dataclass(frozen=True)
class Footprint:
    """What one build weighs, in bytes.

    Attributes:
        download: its wheel.
        installed: what the wheel unpacks to.
        shared_download: the wheels it needs beside it, fetched once for all builds that need the same.
        shared_installed: what these unpack to, hard-linked between environments.
    """

    download: int
    installed: int
    shared_download: int
    shared_installed: int


#: Measured on 2.13.0+cpu and on 2.8.0 as the public index has it (CUDA 12.8), Linux x86_64.
CPU = Footprint(190_000_000, 720_000_000, 35_000_000, 130_000_000)
CUDA = Footprint(890_000_000, 1_660_000_000, 2_700_000_000, 4_900_000_000)


def footprint(variant: str | None) -> Footprint:
    """What builds of a variant weigh. Without one the index decides: the public one's builds for Linux are CUDA's."""
    return CPU if variant == "cpu" else CUDA


@dataclass(frozen=True)
class Plan:
    """What a search will cost.

    Attributes:
        builds: how many builds lie in the range.
        most: questions at the most, if every build can be tested.
        typical: questions on average over the places where the bug may have come and gone.
        installs: of the questions at the most, those in environments that aren't there yet.
        download: bytes to fetch at the most.
        disk: bytes that the environments take at the most, if all are kept.
    """

    builds: int
    most: int
    typical: float
    installs: int
    download: int
    disk: int

    @property
    def words(self) -> str:
        """The plan in one line."""
        return (
            f"{self.builds} builds: {self.typical:.0f} steps as a rule and {self.most} at the most, "
            f"up to {self.installs} installs, {_human(self.download)} to download and {_human(self.disk)} of disk; "
            "a build that can't be tested costs up to three steps more"
        )


def plan(
    builds: Sequence[T],
    *,
    bad: int | None = None,
    good: int | None = None,
    find: Which | str = Which.BOTH,
    cached: Callable[[T], bool] = lambda _: False,
    rank: Callable[[T], int] | None = None,
    weight: Footprint = CPU,
    size: Callable[[T], int | None] = lambda _: None,
) -> Plan:
    """What a search of ``builds`` will cost; nothing is asked or fetched.

    Args:
        weight: what a build weighs where ``size`` doesn't know.
        size: the bytes of a build's wheel, where the index says.

    The other arguments are those of ``search.find``. The newest build stands for ``bad`` where it isn't given.
    """
    which = Which(find)
    anchor = len(builds) - 1 if bad is None else bad
    questions: list[list[int]] = []
    costs: list[list[tuple[int, int]]] = []

    for edge, places in _places(which, anchor, len(builds)):
        own_good = good if good is not None and (good < anchor) is (edge is Which.REGRESSION) else None
        asked = [
            _asked(builds, edge, place, anchor, own_good, cached, rank)
            for place in places
            if own_good is None or (own_good < place if edge is Which.REGRESSION else place <= own_good)
        ]
        if not asked:
            continue
        questions.append([len(positions) for positions in asked])
        costs.append([_cost([builds[p] for p in positions], cached, size, weight) for positions in asked])
    again = max(len(questions) - 1, 0)  # both searches ask the bad end; it is asked once
    anchor_count, anchor_wheels = _cost([builds[anchor]] * again, cached, size, weight)
    installs = sum(max(count for count, _ in edge) for edge in costs) - anchor_count
    download = sum(max(wheels for _, wheels in edge) for edge in costs) - anchor_wheels
    shared = bool(installs)
    return Plan(
        builds=len(builds),
        most=sum(max(edge) for edge in questions) - again,
        typical=sum(sum(edge) / len(edge) for edge in questions) - again,
        installs=installs,
        download=download + weight.shared_download * shared,
        disk=int(download * weight.installed / weight.download) + weight.shared_installed * shared,
    )


def _places(which: Which, anchor: int, size: int) -> list[tuple[Which, range]]:
    """For each edge the positions of the first build after it: 0 for bad from the start, ``size`` for never mended."""
    found = []
    if which in (Which.REGRESSION, Which.BOTH):
        found.append((Which.REGRESSION, range(0, anchor + 1, 1 + (anchor + 1) // _PLACES)))
    if which in (Which.FIX, Which.BOTH):
        found.append((Which.FIX, range(anchor + 1, size + 1, 1 + (size - anchor) // _PLACES)))
    return found


def _asked(
    builds: Sequence[T],
    edge: Which,
    place: int,
    anchor: int,
    good: int | None,
    cached: Callable[[T], bool],
    rank: Callable[[T], int] | None,
) -> list[int]:
    """The positions that a search would ask if the edge were at ``place``."""

    def ask(position: int) -> Finding:
        bad = position >= place if edge is Which.REGRESSION else position < place
        return Finding(Status.BAD if bad else Status.GOOD)

    found = search(
        range(len(builds)),
        ask,
        bad=anchor,
        good=good,
        find=edge,
        cached=lambda position: cached(builds[position]),
        rank=None if rank is None else lambda position: rank(builds[position]),
    )
    return [tested.item for tested in found.tested]


def _cost(
    builds: Sequence[T], cached: Callable[[T], bool], size: Callable[[T], int | None], weight: Footprint
) -> tuple[int, int]:
    """How many of these have to be installed, and the bytes of their wheels."""
    wanted = [build for build in builds if not cached(build)]
    return len(wanted), sum(size(build) or weight.download for build in wanted)


def _human(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
