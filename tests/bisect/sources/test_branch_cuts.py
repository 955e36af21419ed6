"""The days of branch cuts, and the minor versions of nightlies."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypi_simple import DistributionPackage
from wheel_names import nightly, wheel_name

from torchbisect.bisect.sources.branch_cuts import (
    FIRST_NIGHTLY_DAYS,
    NoDayRange,
    days_between_branch_cuts,
    likely_minors,
)
from torchbisect.bisect.sources.nightly import nightlies
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build, Channel

Pages = Callable[..., list[DistributionPackage]]
Pythons = Callable[..., Interpreter]
DAY = datetime.timedelta(days=1)


@given(st.dates(datetime.date(2023, 10, 1), datetime.date(2027, 1, 1)), st.data())
def test_the_minor_version_of_a_day_is_among_the_likely_ones(date: datetime.date, data: st.DataObject) -> None:
    minors = [(2, 2 + index) for index in range(14)]
    rolls = sorted(data.draw(st.sets(st.dates(datetime.date(2023, 10, 1), datetime.date(2027, 1, 1)), max_size=13)))

    def minor_of(day: datetime.date) -> tuple[int, int]:
        return minors[sum(roll <= day for roll in rolls)]

    steps = data.draw(st.tuples(st.integers(1, 30), st.integers(1, 30)))
    near = [date - steps[0] * DAY, date + steps[1] * DAY]
    known = [Build(f"2.{minor_of(d)[1]}.0.dev{d:%Y%m%d}", Channel.NIGHTLY, date=d) for d in near]
    between = minor_of(near[1])[1] - minor_of(near[0])[1]
    if between <= 1:
        assert minor_of(date) in likely_minors(date, known)[: between + 1]
    assert len(likely_minors(date, known)) <= min(3, between + 1)


def test_the_likely_minor_versions_of_known_wheels() -> None:
    listed = [nightly("2026-08-16"), nightly("2026-08-29")]
    for day, minor in [
        ("2023-09-05", 1),
        ("2023-10-10", 2),
        ("2024-03-15", 3),
        ("2024-03-16", 4),
        ("2024-11-10", 6),
        ("2025-08-29", 9),
        ("2025-09-10", 10),
        ("2026-01-15", 11),
        ("2026-04-08", 12),
        ("2026-05-18", 13),
    ]:
        assert (2, minor) == likely_minors(datetime.date.fromisoformat(day), listed)[0]
        assert (2, minor) in likely_minors(datetime.date.fromisoformat(day), listed)


def test_the_days_between_the_branch_cuts_of_two_releases() -> None:
    days = days_between_branch_cuts(Build("2.8.0"), Build("2.9.1"))
    assert days.first <= FIRST_NIGHTLY_DAYS[2, 9] <= FIRST_NIGHTLY_DAYS[2, 10] <= days.last
    assert (days.last - days.first).days < 100


def test_the_days_on_the_page_go_before_those_in_the_table(page: Pages, python: Pythons) -> None:
    names = [wheel_name(f"2.14.0.dev202608{day:02}+cpu") for day in range(1, 14)]
    names += [wheel_name(f"2.15.0.dev202608{day:02}+cpu") for day in range(14, 20)]
    days = days_between_branch_cuts(Build("2.13.0"), Build("2.14.0"), nightlies(page(names), python()))
    assert days.last == datetime.date(2026, 8, 15)
    newest = days_between_branch_cuts(Build("2.13.0"), Build("2.15.0"), nightlies(page(names), python()))
    assert newest.last == datetime.date(2026, 8, 19)


def test_patch_releases_and_unknown_releases_have_no_days() -> None:
    with pytest.raises(NoDayRange, match="picked"):
        days_between_branch_cuts(Build("2.9.0"), Build("2.9.1"))
    with pytest.raises(NoDayRange, match="isn't known"):
        days_between_branch_cuts(Build("2.90.0"), Build("2.91.0"))
