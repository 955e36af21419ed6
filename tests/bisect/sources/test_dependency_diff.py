"""What else changed between two builds; what is fetched meanwhile."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search.find import Finding, Status, find
from torchbisect.bisect.search.prefetch import Prefetcher
from torchbisect.bisect.sources.dependency_diff import changed_facts, changed_pins
from torchbisect.containers.environment import Facts


def test_triton_is_one_package_under_both_of_its_names() -> None:
    before = ["filelock", "sympy>=1.13", 'pytorch-triton==3.5.0+git0d4682f0; platform_system == "Linux"']
    after = [
        "filelock",
        "sympy>=1.14",
        'triton==3.6.0+git9844da95; platform_system == "Linux"',
        "optree==0.1; extra == 'optree'",
    ]
    assert [str(change) for change in changed_pins(before, after)] == [
        "triton went from 3.5.0+git0d4682f0 to 3.6.0+git9844da95"
    ]


def test_libraries_come_and_go() -> None:
    changes = changed_pins(["nvidia-cudnn-cu12==9.1.0"], ["nvidia-cudnn-cu13==9.2.0", "not a requirement =="])
    assert [str(change) for change in changes] == [
        "nvidia-cudnn-cu12 is no longer needed (was 9.1.0)",
        "nvidia-cudnn-cu13 came in (9.2.0)",
    ]


@given(st.lists(st.text()), st.lists(st.sampled_from(["triton==3.6.0", "numpy", "filelock>=3"])))
def test_any_metadata_can_be_read_and_equal_pins_are_no_change(noise: list[str], known: list[str]) -> None:
    assert changed_pins([*noise, *known], [*known, *noise]) == ()


def test_facts_that_differ_besides_torch() -> None:
    old, new = Facts("2.8.0", "a", "3.11.7", "x", "12.8", "3.4.0"), Facts("2.9.0", "b", "3.11.7", "x", "12.8", "3.5.0")
    assert [str(change) for change in changed_facts(old, new)] == ["triton went from 3.4.0 to 3.5.0"]


def test_both_possible_next_builds_are_fetched_and_the_loser_is_stopped() -> None:
    started: list[int] = []
    stopped: set[int] = set()

    def fetch(item: int, cancel: threading.Event) -> None:
        started.append(item)
        cancel.wait(10)
        stopped.add(item)

    with Prefetcher(fetch) as prefetcher:
        found = find(
            range(64),
            lambda item: Finding(Status.BAD if item >= 27 else Status.GOOD),
            good=0,
            bad=63,
            find="regression",
            prefetch=prefetcher,
        )
    asked = [tested.item for tested in found.tested]
    assert set(asked[1:]) <= set(started)
    assert stopped == set(started)
    assert len(started) <= 2 * len(asked)


def test_without_room_nothing_is_fetched() -> None:
    def fetch(item: int, cancel: threading.Event) -> None:
        raise AssertionError(item)

    with Prefetcher(fetch, room=lambda _: False) as prefetcher:
        prefetcher([1, 2], [3])


def test_no_more_is_fetched_at_once_than_there_is_room_for() -> None:
    started: list[int] = []

    def fetch(item: int, cancel: threading.Event) -> None:
        started.append(item)
        cancel.wait(10)

    with Prefetcher(fetch, room=lambda running: running < 1) as prefetcher:
        prefetcher([1, 2], [3])
    assert started == [1]
