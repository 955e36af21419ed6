"""Releases and nightlies from pages like those of the real indexes."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypi_simple import ProjectPage

from torchbisect.bisect.sources.branch_cuts import FIRST_NIGHTLY_DAYS, days_between_branch_cuts, likely_minors
from torchbisect.bisect.sources.nightly import candidate_urls, nightlies, nightlies_of_days
from torchbisect.bisect.sources.release import compile_unsupported_reason, releases
from torchbisect.bisect.sources.url_probe import UrlProbe
from torchbisect.bisect.sources.variant_pairs import PythonVariant, split_range
from torchbisect.containers.index.pages import project_page
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import RetryPolicy

Pages = Callable[..., ProjectPage]
Pythons = Callable[..., Interpreter]
DAY = datetime.timedelta(days=1)


def wheel(version: str, python: str = "cp311", platform: str = "manylinux_2_28_x86_64") -> str:
    return f"torch-{version}-{python}-{python}-{platform}.whl"


def nightly(day: str, minor: str = "2.15") -> Build:
    date = datetime.date.fromisoformat(day)
    return Build(f"{minor}.0.dev{date:%Y%m%d}+cpu", Channel.NIGHTLY, date=date)


# Releases


def test_releases_are_ordered_by_version_and_the_others_have_a_reason(python: Pythons) -> None:
    data = {
        "meta": {"api-version": "1.1"},
        "name": "torch",
        "versions": [],
        "files": [
            {
                "filename": name,
                "url": f"https://files.example/{name}",
                "hashes": {},
                "yanked": yanked,
                "requires-python": needs,
            }
            for name, yanked, needs in [
                (wheel("2.10.0"), False, ">=3.10"),
                (wheel("2.9.1"), False, ">=3.10"),
                (wheel("2.9.0"), "broken metadata", ">=3.10"),
                (wheel("2.4.1", platform="manylinux1_x86_64"), False, None),
                (wheel("2.4.0", python="cp312"), False, None),
                (wheel("2.11.0rc3"), False, None),
                (wheel("1.13.1"), False, None),
                (wheel("2.0.1"), False, None),
                (wheel("2.8.0"), False, ">=3.12"),
                ("torch-2.7.0.tar.gz", False, None),
                ("not a wheel.whl", False, None),
            ]
        ],
    }
    listing = releases(
        ProjectPage.from_json_data(data), python(platforms=("manylinux_2_28_x86_64", "manylinux1_x86_64"))
    )
    assert [build.version for build in listing.builds] == ["2.4.1", "2.9.1", "2.10.0"]
    assert [str(left) for left in listing.left_out] == [
        "1.13.1: torch.compile came with 2.0",
        "2.0.1: its torch.compile needs a Python below 3.11",
        "2.4.0: no wheel for Python 3.11 (cp311) on manylinux_2_28_x86_64",
        "2.8.0: requires Python >=3.12",
        "2.9.0: yanked: broken metadata",
        "2.11.0rc3: a pre-release",
    ]


def test_with_a_variant_a_build_is_exactly_that_wheel(page: Pages, python: Pythons) -> None:
    names = [wheel("2.8.0+cpu"), wheel("2.8.0+cu126"), wheel("2.9.0+cpu")]
    assert [str(b.version) for b in releases(page(names), python(), "cpu").builds] == ["2.8.0+cpu", "2.9.0+cpu"]
    assert [str(b.version) for b in releases(page(names), python()).builds] == ["2.8.0", "2.9.0"]


@pytest.mark.parametrize(
    ("minor", "python", "fine"),
    [
        ((2, 0), (3, 10), True),
        ((2, 0), (3, 11), False),
        ((2, 3), (3, 11), True),
        ((2, 3), (3, 12), False),
        ((2, 4), (3, 12), True),
        ((2, 5), (3, 13), False),
        ((2, 6), (3, 13), True),
        ((2, 9), (3, 14), False),
        ((2, 10), (3, 14), True),
        ((2, 99), (3, 99), True),
    ],
)
def test_compile_unsupported_reason(minor: tuple[int, int], python: tuple[int, int], fine: bool) -> None:
    assert (compile_unsupported_reason(minor, python) is None) is fine


# Nightlies


def test_nightlies_are_ordered_by_day_across_a_new_minor_version(page: Pages, python: Pythons) -> None:
    """The wheels in pytorch#124821: one old day in October, 2.3 on 15 March and 2.4 on 16 March, one missing day."""
    days = ["2.3.0.dev20240315", "2.4.0.dev20240316", "2.4.0.dev20240326", "2.4.0.dev20240328", "2.2.0.dev20231010"]
    names = [wheel(f"{day}+cpu", platform="linux_x86_64") for day in sorted(days, reverse=True)]
    listing = nightlies(page([*names, "torch-2.5.1+cpu-cp311-cp311-linux_x86_64.whl"]), python())
    assert [build.name for build in listing.builds] == [
        "2.2.0.dev20231010",
        "2.3.0.dev20240315",
        "2.4.0.dev20240316",
        "2.4.0.dev20240326",
        "2.4.0.dev20240328",
    ]
    assert listing.builds[0].date == datetime.date(2023, 10, 10)


def test_relative_and_absolute_links_give_the_same_wheels(
    serve: Callable[[dict[str, str | int]], tuple[str, list[str]]], python: Pythons
) -> None:
    name = wheel("2.15.0.dev20260816+cpu").replace("+", "%2B")
    answers: dict[str, str | int] = {}
    address, _ = serve(answers)
    for folder, base in [("a", "/whl/nightly/cpu/"), ("b", f"{address}/whl/nightly/cpu/")]:
        answers[f"/{folder}/torch/"] = f'<!DOCTYPE html><a href="{base}{name}">{name.replace("%2B", "+")}</a><br/>'
    found = []
    for folder in "ab":
        read = project_page(f"{address}/{folder}", "torch")
        assert read is not None
        listing = nightlies(read, python())
        found.append(listing.wheels["2.15.0.dev20260816+cpu"].url)
    assert found == [f"{address}/whl/nightly/cpu/{name}"] * 2


def test_of_two_platform_tags_the_preferred_one_is_used(page: Pages, python: Pythons) -> None:
    names = [wheel("2.6.0.dev20241230+cpu", platform=p) for p in ("linux_x86_64", "manylinux_2_28_x86_64")]
    listing = nightlies(page(names), python())
    assert len(listing.builds) == 1
    assert "manylinux_2_28" in listing.wheels["2.6.0.dev20241230+cpu"].url


def test_wheels_for_other_variants_pythons_and_abis_are_left_out(page: Pages, python: Pythons) -> None:
    names = [
        wheel("2.15.0.dev20260816+cpu"),
        wheel("2.15.0.dev20260817+cu126"),
        wheel("2.15.0.dev20260818+cpu", python="cp312"),
        "torch-2.15.0.dev20260819+cpu-cp313-cp313t-manylinux_2_28_x86_64.whl",
        wheel("2.15.0.dev20260820", platform="macosx_14_0_arm64"),
    ]
    listing = nightlies(page(names), python())
    assert [build.name for build in listing.builds] == ["2.15.0.dev20260816"]
    assert [left.version for left in listing.left_out] == [
        "2.15.0.dev20260818+cpu",
        "2.15.0.dev20260819+cpu",
        "2.15.0.dev20260820",
    ]
    free = nightlies(page(names), python("3.13.5", abi="cp313t"))
    assert [build.name for build in free.builds] == ["2.15.0.dev20260819"]
    mac = nightlies(page(names), python(platforms=("macosx_14_0_arm64",)))
    assert [build.version for build in mac.builds] == ["2.15.0.dev20260820"]


def test_unlisted_nightlies_are_found_by_their_address(
    serve: Callable[[dict[str, str | int]], tuple[str, list[str]]], python: Pythons
) -> None:
    """Each name costs a HEAD request; 13 March has no file and is left out."""
    have = {
        "/whl/nightly/cpu/torch-2.3.0.dev20240312%2Bcpu-cp311-cp311-linux_x86_64.whl": "",
        "/whl/nightly/cpu/torch-2.4.0.dev20240314%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl": "",
    }
    address, requests = serve(dict(have))
    listed = [nightly("2024-03-11", "2.3"), nightly("2024-03-15", "2.4")]
    first, last = datetime.date(2024, 3, 11), datetime.date(2024, 3, 15)
    missing: dict[str, bool] = {}
    with UrlProbe(missing) as probe:
        listing = nightlies_of_days(first, last, listed, probe.exists, python(), index=f"{address}/whl/nightly")
    assert [build.name for build in listing.builds] == [
        "2.3.0.dev20240311",
        "2.3.0.dev20240312",
        "2.4.0.dev20240314",
        "2.4.0.dev20240315",
    ]
    assert [left.version for left in listing.left_out] == ["dev20240313"]
    assert listing.builds[1].requirement.endswith("torch-2.3.0.dev20240312%2Bcpu-cp311-cp311-linux_x86_64.whl")
    assert all(request.startswith("HEAD ") for request in requests)
    before = len(requests)
    with UrlProbe(missing) as probe:
        assert nightlies_of_days(first, last, listed, probe.exists, python(), index=f"{address}/whl/nightly") == listing
    assert len(requests) == before + 2, "only existing files are asked for again"


def test_a_host_that_is_down_is_no_missing_file(
    serve: Callable[[dict[str, str | int]], tuple[str, list[str]]],
) -> None:
    address, _ = serve({"/busy": 503})
    with UrlProbe(retry=RetryPolicy(0.01, 0.01, 0.03)) as probe, pytest.raises(IndexUnreachable):
        probe.exists(f"{address}/busy")


def test_candidate_urls_have_every_host_platform_tag_and_minor_version(python: Pythons) -> None:
    urls = candidate_urls(datetime.date(2023, 9, 5), [(2, 1), (2, 2)], python(), "cu118")
    assert urls == [
        f"https://{host}/whl/nightly/cu118/torch-{minor}.0.dev20230905%2Bcu118-cp311-cp311-{platform}.whl"
        for minor in ("2.1", "2.2")
        for platform in ("linux_x86_64", "manylinux_2_28_x86_64")
        for host in ("download.pytorch.org", "download-r2.pytorch.org")
    ]
    mac = candidate_urls(datetime.date(2026, 8, 29), [(2, 15)], python(platforms=("macosx_14_0_arm64",)))
    assert mac[0].endswith("/torch-2.15.0.dev20260829-cp311-cp311-macosx_14_0_arm64.whl")


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


# From releases to days


def test_the_days_between_the_branch_cuts_of_two_releases() -> None:
    days = days_between_branch_cuts(Build("2.8.0"), Build("2.9.1"))
    assert not isinstance(days, str)
    assert days.first <= FIRST_NIGHTLY_DAYS[2, 9] <= FIRST_NIGHTLY_DAYS[2, 10] <= days.last
    assert (days.last - days.first).days < 100


def test_the_days_on_the_page_go_before_those_in_the_table(page: Pages, python: Pythons) -> None:
    names = [wheel(f"2.14.0.dev202608{day:02}+cpu") for day in range(1, 14)]
    names += [wheel(f"2.15.0.dev202608{day:02}+cpu") for day in range(14, 20)]
    days = days_between_branch_cuts(Build("2.13.0"), Build("2.14.0"), nightlies(page(names), python()))
    assert not isinstance(days, str)
    assert days.last == datetime.date(2026, 8, 15)
    newest = days_between_branch_cuts(Build("2.13.0"), Build("2.15.0"), nightlies(page(names), python()))
    assert not isinstance(newest, str)
    assert newest.last == datetime.date(2026, 8, 19)


def test_patch_releases_and_unknown_releases_have_no_days() -> None:
    assert "picked" in str(days_between_branch_cuts(Build("2.9.0"), Build("2.9.1")))
    assert "isn't known" in str(days_between_branch_cuts(Build("2.90.0"), Build("2.91.0")))


# Pairs of a Python and a variant


@given(st.data())
def test_the_parts_of_a_split_cover_both_ends_and_share_a_day(data: st.DataObject) -> None:
    start = datetime.date(2026, 1, 1)
    pairs = [PythonVariant(f"cp3{number}", variant) for number in (11, 12) for variant in ("cu126", "cu130")]
    offered = {pair: sorted(start + day * DAY for day in data.draw(st.sets(st.integers(0, 12)))) for pair in pairs}
    first, last = start, start + 12 * DAY
    split = split_range(first, last, offered, pairs)
    days = sorted({day for own in offered.values() for day in own})
    if not days:
        assert not split.parts
        assert split.notice
        return
    assert split.parts[0].first == days[0]
    assert split.parts[-1].last == days[-1]
    for part in split.parts:
        assert part.first in offered[part.pair]
        assert part.last in offered[part.pair]
    joined = all(a.last == b.first for a, b in zip(split.parts, split.parts[1:]))
    assert joined or "nothing joins" in (split.notice or "")
    for pair in pairs:
        if days[0] in offered[pair] and days[-1] in offered[pair]:
            assert len(split.parts) == 1
            assert split.notice is None


def test_a_range_beyond_the_end_of_a_variant_is_split_with_a_notice() -> None:
    old = [datetime.date(2026, 4, day) for day in range(1, 8)]
    new = [datetime.date(2026, 4, day) for day in range(3, 20)]
    pairs = [PythonVariant("cp311", "cu128"), PythonVariant("cp311", "cu130")]
    split = split_range(datetime.date(2026, 4, 1), datetime.date(2026, 4, 19), dict(zip(pairs, (old, new))), pairs)
    assert [(s.pair.variant, s.first.day, s.last.day) for s in split.parts] == [("cu128", 1, 7), ("cu130", 7, 19)]
    assert "the range is split: 2026-04-01 to 2026-04-07 cu128 for cp311" in (split.notice or "")
