"""Sentences about regressions and fixes, and the order of builds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.wording import join_names
from torchbisect.reports.model.search_results import (
    BisectReport,
    BuildVerdict,
    Fix,
    Regression,
    SkippedBuild,
    builds_in_order,
    left_out,
    ranges,
    sentence,
    verdicts_in_order,
)


def said(bisect: BisectReport) -> list[str]:
    return [sentence(found) for found in ranges(bisect)]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Regression("2.4.1", "2.5.1", exact=True), "It broke in 2.5.1: last good 2.4.1, first bad 2.5.1."),
        (Regression("2.4.1", "2.6.0"), "It broke between 2.4.1 (last good) and 2.6.0 (first bad)."),
        (
            Regression("2.4.1", "2.6.0", between=("2.5.0", "2.5.1")),
            "It broke after 2.4.1 (last good) and not later than 2.6.0 (first bad); "
            "2.5.0 and 2.5.1 between them gave no verdict.",
        ),
        (Regression(None, "2.2.2"), "Already bad in 2.2.2, the oldest build that could be tested."),
        (Regression("2.4.1", None), "Good in 2.4.1, and no bad build was found after it."),
        (Regression(None, None), "Where it broke could not be found."),
        (Regression(None, None, words="Every build was untestable."), "Every build was untestable."),
    ],
)
def test_regressions(found: Regression, words: str) -> None:
    assert said(BisectReport(regression=found)) == [words]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Fix("2.8.0", "2.9.0", exact=True), "It was fixed in 2.9.0: last bad 2.8.0, first fixed 2.9.0."),
        (Fix("2.8.0", "2.9.1"), "It was fixed between 2.8.0 (last bad) and 2.9.1 (first fixed)."),
        (Fix("2.15.0", None), "Still bad in 2.15.0, the newest build that could be tested."),
        (Fix(None, "2.2.2"), "Already fixed in 2.2.2, the oldest build that could be tested."),
        (Fix(None, None), "Where it was fixed could not be found."),
    ],
)
def test_fixes(found: Fix, words: str) -> None:
    assert said(BisectReport(fix=found)) == [words]


def test_a_search_that_did_not_run_gives_no_sentence() -> None:
    assert said(BisectReport()) == []
    assert ranges(None) == ()


@given(st.lists(st.text("ab", min_size=1), min_size=1, max_size=20))
def test_a_list_names_or_counts_everything(names: list[str]) -> None:
    words = join_names(names)
    pieces = words.replace(" and ", ", ").split(", ")
    if len(names) <= 8:
        assert pieces == names
    else:
        assert pieces[:7] == names[:7]
        assert words.endswith(f"and {len(names) - 7} more")


@given(st.permutations(["2.2.2", "2.9.1", "2.10.0", "2.13.0", "2.14.0.dev20260212"]))
def test_builds_in_the_order_of_time(names: list[str]) -> None:
    bisect = BisectReport(tested=tuple(BuildVerdict(name, "good") for name in names))
    assert [row.build for row in verdicts_in_order(bisect, {})] == [
        "2.2.2",
        "2.9.1",
        "2.10.0",
        "2.13.0",
        "2.14.0.dev20260212",
    ]


def test_nightlies_among_releases() -> None:
    names = ["2.13.0", "2.14.0.dev20260101", "2.14.0.dev20260301", "2.14.0"]
    bisect = BisectReport(
        tested=tuple(BuildVerdict(name, "good") for name in reversed(names)), listed=("2.13.0", "2.14.0")
    )
    assert [row.build for row in verdicts_in_order(bisect, {})] == names
    assert builds_in_order(BisectReport(listed=("2.13.0", "2.9.1"), tested=(BuildVerdict("2.9.1", "bad"),)), {}) == [
        "2.13.0",
        "2.9.1",
    ]


def test_adjacent_builds_left_out_for_one_reason_share_an_entry() -> None:
    skips = [SkippedBuild(name, "old") for name in ("1.0.0", "1.1.0", "1.13.1")] + [SkippedBuild("2.0.0", "no wheel")]
    assert left_out(skips) == [("1.0.0 to 1.13.1", "old"), ("2.0.0", "no wheel")]
    assert left_out(skips[:2]) == [("1.0.0 and 1.1.0", "old")]
