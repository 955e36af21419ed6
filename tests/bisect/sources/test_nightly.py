"""Nightlies on PyTorch's own index, listed and unlisted."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from pypi_simple import DistributionPackage
from wheel_names import nightly, wheel_name

from torchbisect.bisect.sources.nightly import UrlProbe, candidate_urls, nightlies, nightlies_of_days
from torchbisect.containers.index.pages import project_page
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import RetryPolicy

Pages = Callable[..., list[DistributionPackage]]
Pythons = Callable[..., Interpreter]


def test_nightlies_are_ordered_by_day_across_a_new_minor_version(page: Pages, python: Pythons) -> None:
    """The wheels in pytorch#124821: one old day in October, 2.3 on 15 March and 2.4 on 16 March, one missing day."""
    days = ["2.3.0.dev20240315", "2.4.0.dev20240316", "2.4.0.dev20240326", "2.4.0.dev20240328", "2.2.0.dev20231010"]
    names = [wheel_name(f"{day}+cpu", platform="linux_x86_64") for day in sorted(days, reverse=True)]
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
    name = wheel_name("2.15.0.dev20260816+cpu").replace("+", "%2B")
    answers: dict[str, str | int] = {}
    address, _ = serve(answers)
    for folder, base in [("a", "/whl/nightly/cpu/"), ("b", f"{address}/whl/nightly/cpu/")]:
        answers[f"/{folder}/torch/"] = f'<!DOCTYPE html><a href="{base}{name}">{name.replace("%2B", "+")}</a><br/>'
    found = []
    for folder in "ab":
        read = project_page(f"{address}/{folder}", "torch")
        assert read is not None
        listing = nightlies(read.packages, python())
        found.append(listing.wheels["2.15.0.dev20260816+cpu"].url)
    assert found == [f"{address}/whl/nightly/cpu/{name}"] * 2


def test_of_two_platform_tags_the_preferred_one_is_used(page: Pages, python: Pythons) -> None:
    names = [wheel_name("2.6.0.dev20241230+cpu", platform=p) for p in ("linux_x86_64", "manylinux_2_28_x86_64")]
    listing = nightlies(page(names), python())
    assert len(listing.builds) == 1
    assert "manylinux_2_28" in listing.wheels["2.6.0.dev20241230+cpu"].url


def test_wheels_for_other_variants_pythons_and_abis_are_left_out(page: Pages, python: Pythons) -> None:
    names = [
        wheel_name("2.15.0.dev20260816+cpu"),
        wheel_name("2.15.0.dev20260817+cu126"),
        wheel_name("2.15.0.dev20260818+cpu", python="cp312"),
        "torch-2.15.0.dev20260819+cpu-cp313-cp313t-manylinux_2_28_x86_64.whl",
        wheel_name("2.15.0.dev20260820", platform="macosx_14_0_arm64"),
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
    with UrlProbe() as probe:
        listing = nightlies_of_days(first, last, listed, probe.exists, python(), index=f"{address}/whl/nightly")
        asked = list(requests)
        assert nightlies_of_days(first, last, listed, probe.exists, python(), index=f"{address}/whl/nightly") == listing
    assert [build.name for build in listing.builds] == [
        "2.3.0.dev20240311",
        "2.3.0.dev20240312",
        "2.4.0.dev20240314",
        "2.4.0.dev20240315",
    ]
    assert [left.version for left in listing.left_out] == ["dev20240313"]
    assert listing.builds[1].requirement.endswith("torch-2.3.0.dev20240312%2Bcpu-cp311-cp311-linux_x86_64.whl")
    assert all(request.startswith("HEAD ") for request in requests)
    assert len(requests) == len(asked) + 2, "only existing files are asked for again"


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


def test_a_host_that_is_down_is_no_missing_file(
    serve: Callable[[dict[str, str | int]], tuple[str, list[str]]],
) -> None:
    address, _ = serve({"/busy": 503})
    with UrlProbe(retry=RetryPolicy(0.01, 0.01, 0.03)) as probe, pytest.raises(IndexUnreachable):
        probe.exists(f"{address}/busy")
