"""The forms of text for a build, and the errors for builds that do not exist."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.sources.selection import check_ends, find_build, parse_build
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError
from torchbisect.core.verdict import Answer, Verdict

RELEASES = [Build(version) for version in ("2.4.1", "2.5.0", "2.8.0", "2.9.0", "2.9.1", "2.10.0")]
NIGHTLIES = [
    Build(f"2.14.0.dev202602{day:02}+cpu", Channel.NIGHTLY, date=datetime.date(2026, 2, day)) for day in (10, 12, 15)
]
BUILDS = [*RELEASES, *NIGHTLIES]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.8.0", "2.8.0"),
        ("2.8", "2.8.0"),
        ("v2.8.0", "2.8.0"),
        (" 2.8.0 ", "2.8.0"),
        ("torch==2.8.0", "2.8.0"),
        ("2.14.0.dev20260212", "2.14.0.dev20260212+cpu"),
        ("2.14.0.dev20260212+cpu", "2.14.0.dev20260212+cpu"),
        ("2026-02-12", "2.14.0.dev20260212+cpu"),
        ("20260212", "2.14.0.dev20260212+cpu"),
    ],
)
def test_a_build_is_found_by_each_of_its_names(text: str, version: str) -> None:
    assert find_build(BUILDS, text).version == version


def test_the_build_of_the_variant_that_was_typed_comes_first() -> None:
    variants = [Build("2.8.0+cpu"), Build("2.8.0+cu128"), Build("2.8.0+xpu")]
    assert find_build(variants, "2.8.0+cu128").version == "2.8.0+cu128"
    assert find_build(variants, "2.8.0+cu126").version == "2.8.0+xpu"
    assert find_build(BUILDS, "2.8.0+cu128").version == "2.8.0"
    assert find_build(BUILDS, "2.14.0.dev20260212+cu126").version == "2.14.0.dev20260212+cpu"


def test_installed_means_the_installed_build() -> None:
    there = Build("2.13.0+cpu", Channel.INSTALLED)
    assert find_build([*BUILDS, there], "installed") is there


@pytest.mark.parametrize(
    "text", ["", "two", "2026-02-30", "2.14.0.dev20261340", "2.14.0.dev5", "v", "2026/02/12", "main", "8"]
)
def test_text_that_is_no_build_is_rejected_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as rejected:
        find_build(BUILDS, text)
    assert "\n" not in str(rejected.value)


def test_the_error_for_a_missing_build_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no torch 2\.7\.0 .*; the nearest are 2\.4\.1, 2\.5\.0, 2\.8\.0, 2\.9\.0 \("):
        find_build(BUILDS, "2.7.0")
    with pytest.raises(
        InputError, match=r"the nearest are 2\.14\.0\.dev20260210, 2\.14\.0\.dev20260212, 2\.14\.0\.dev20260215 "
    ):
        find_build(BUILDS, "2026-02-14")


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    error = None
    try:
        selector = parse_build(text)
    except InputError as rejected:
        error = str(rejected)
    assert len(error.splitlines()) == 1 if error else selector.installed or selector.version or selector.date


@given(st.dates(datetime.date(2020, 1, 1), datetime.date(2030, 1, 1)))
def test_all_forms_of_a_day_are_equal(day: datetime.date) -> None:
    forms = [f"{day:%Y%m%d}", day.isoformat(), f"2.14.0.dev{day:%Y%m%d}", f"2.14.0.dev{day:%Y%m%d}+cpu"]
    assert {parse_build(form).date for form in forms} == {day}


def test_ends_on_the_wrong_side_are_rejected_with_advice() -> None:
    older, newer = Build("2.8.0"), Build("2.10.0")
    check_ends(older, newer, BoundaryKind.REGRESSION)
    check_ends(newer, older, BoundaryKind.FIX)
    check_ends(newer, older, BoundaryKind.BOTH)
    with pytest.raises(InputError, match="--find fix"):
        check_ends(newer, older, BoundaryKind.REGRESSION)
    with pytest.raises(InputError, match="--find regression"):
        check_ends(older, newer, BoundaryKind.FIX)
    with pytest.raises(InputError, match="two different"):
        check_ends(older, older)
    rolled = Build("2.3.0.dev20240320", Channel.NIGHTLY, date=datetime.date(2024, 3, 20))
    before = Build("2.4.0.dev20240316", Channel.NIGHTLY, date=datetime.date(2024, 3, 16))
    check_ends(before, rolled, BoundaryKind.REGRESSION)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer.SAME, BuildStatus.BAD),
        (Answer.NONE, BuildStatus.GOOD),
        (Answer.OTHER, BuildStatus.UNTESTABLE),
        (Answer.UNTESTABLE, BuildStatus.UNTESTABLE),
    ],
)
def test_only_same_and_none_are_evidence(answer: Answer, status: BuildStatus) -> None:
    found = BuildAnswer.from_verdict(Verdict(answer, "import-failed" if not status.testable else None, "line", 2.0))
    assert found.status is status
    assert found.reason == (None if status.testable else "import-failed")
    assert BuildAnswer.from_verdict(Verdict(answer)).reason is not None or status.testable
