"""The plan of a search, compared with all searches that it covers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.bisect.search.cost import plan_search
from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions
from torchbisect.core.footprint import CPU, CUDA, footprint


@settings(max_examples=5)
@given(st.integers(1, 12), st.data())
def test_the_plan_is_the_cost_of_the_most_expensive_search(size: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, size - 1))
    good = data.draw(st.none() | st.integers(0, size - 1).filter(lambda g: g != bad))
    hot = data.draw(st.sets(st.integers(0, size - 1)))
    planned = plan_search(range(size), SearchOptions(bad=bad, good=good, cached=hot.__contains__))
    dearest = 0
    first = 0 if good is None or good > bad else good + 1
    last = size if good is None or good < bad else good
    for came in range(first, bad + 1):
        for went in range(bad + 1, last + 1):

            def ask(item: int, came: int = came, went: int = went) -> BuildAnswer:
                return BuildAnswer(BuildStatus.BAD if came <= item < went else BuildStatus.GOOD)

            found = find_boundaries(range(size), ask, SearchOptions(bad=bad, good=good, cached=hot.__contains__))
            asked = {tested.item for tested in found.tested} | {bad}
            assert len(asked) <= planned.most
            assert len(asked - hot) <= planned.installs
            dearest = max(dearest, len(asked))
    assert dearest == planned.most
    assert planned.typical <= planned.most


def test_sixty_nightlies_between_known_ends_need_nine_steps_at_most() -> None:
    planned = plan_search(range(60), SearchOptions(bad=59, good=0, kind=BoundaryKind.REGRESSION), size=footprint("cpu"))
    assert planned.most <= 2 + 6 + 1
    assert planned.download == planned.installs * CPU.download + CPU.shared_download
    assert planned.summary.startswith(f"60 builds: {planned.typical:.0f} steps")


def test_cached_builds_need_no_download() -> None:
    planned = plan_search(range(20), SearchOptions(bad=10, cached=lambda _: True), size=CUDA)
    assert (planned.installs, planned.download, planned.disk) == (0, 0, 0)


@pytest.mark.parametrize(("variant", "expected"), [("cpu", CPU), ("cu126", CUDA), (None, CUDA)])
def test_the_size_of_a_variant(variant: str | None, expected: object) -> None:
    assert footprint(variant) is expected


def test_the_sizes_in_the_index_are_used() -> None:
    planned = plan_search(
        ["a", "b"], SearchOptions(bad=1, good=0, kind=BoundaryKind.REGRESSION), wheel_size={"a": 1000, "b": None}.get
    )
    assert planned.download == 1000 + CPU.download + CPU.shared_download
