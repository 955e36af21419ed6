"""Releases on the pages of package indexes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pypi_simple import DistributionPackage, ProjectPage
from wheel_names import wheel_name

from torchbisect.bisect.sources.release import compile_unsupported_reason, releases
from torchbisect.containers.python.interpreter import Interpreter

Pages = Callable[..., list[DistributionPackage]]
Pythons = Callable[..., Interpreter]


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
                (wheel_name("2.10.0"), False, ">=3.10"),
                (wheel_name("2.9.1"), False, ">=3.10"),
                (wheel_name("2.9.0"), "broken metadata", ">=3.10"),
                (wheel_name("2.4.1", platform="manylinux1_x86_64"), False, None),
                (wheel_name("2.4.0", python="cp312"), False, None),
                (wheel_name("2.11.0rc3"), False, None),
                (wheel_name("1.13.1"), False, None),
                (wheel_name("2.0.1"), False, None),
                (wheel_name("2.8.0"), False, ">=3.12"),
                ("torch-2.7.0.tar.gz", False, None),
                ("not a wheel.whl", False, None),
            ]
        ],
    }
    listing = releases(
        ProjectPage.from_json_data(data).packages, python(platforms=("manylinux_2_28_x86_64", "manylinux1_x86_64"))
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


def test_a_release_that_does_not_compile_can_be_measured(page: Pages, python: Pythons) -> None:
    names = [wheel_name("1.13.1"), wheel_name("2.0.1"), wheel_name("2.9.0")]
    assert [str(b.version) for b in releases(page(names), python()).builds] == ["2.9.0"]
    assert [str(b.version) for b in releases(page(names), python(), compiles=False).builds] == [
        "1.13.1",
        "2.0.1",
        "2.9.0",
    ]


def test_with_a_variant_a_build_is_exactly_that_wheel_name(page: Pages, python: Pythons) -> None:
    names = [wheel_name("2.8.0+cpu"), wheel_name("2.8.0+cu126"), wheel_name("2.9.0+cpu")]
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
