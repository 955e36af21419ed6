"""The builds that may be asked next are fetched while the present one runs."""

from __future__ import annotations

import threading

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.search.find import Prefetcher, find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions


def test_both_possible_next_builds_are_fetched_and_the_needless_fetch_is_stopped() -> None:
    started: list[int] = []
    stopped: set[int] = set()

    def fetch(item: int, cancel: threading.Event) -> None:
        started.append(item)
        cancel.wait(10)
        stopped.add(item)

    with Prefetcher(fetch) as prefetcher:
        found = find_boundaries(
            range(64),
            lambda item: BuildAnswer(BuildStatus.BAD if item >= 27 else BuildStatus.GOOD),
            SearchOptions(good=0, bad=63, kind=BoundaryKind.REGRESSION),
            prefetch=prefetcher,
        )
    asked = [tested.item for tested in found.tested]
    assert set(asked[1:]) <= set(started)
    assert stopped == set(started)
    assert len(started) <= 2 * len(asked)


def test_without_room_nothing_is_fetched() -> None:
    def fetch(item: int, cancel: threading.Event) -> None:
        raise AssertionError(item)

    with Prefetcher(fetch, room=lambda build, running: False) as prefetcher:
        prefetcher([1, 2], [3])


def test_no_more_builds_are_fetched_at_once_than_there_is_room_for() -> None:
    started: list[int] = []

    def fetch(item: int, cancel: threading.Event) -> None:
        started.append(item)
        cancel.wait(10)

    with Prefetcher(fetch, room=lambda build, running: running < 1) as prefetcher:
        prefetcher([1, 2], [3])
    assert started == [1]
