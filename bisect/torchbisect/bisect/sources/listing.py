"""A list of the builds that a channel offers to this machine, and of those left out, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from torchbisect.core.build import Build

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage


@dataclass(frozen=True)
class LeftOut:
    """A version of the channel that can't be asked here, and the reason in a few words."""

    version: str
    reason: str

    def __str__(self) -> str:
        return f"{self.version}: {self.reason}"


@dataclass(frozen=True)
class Wheel:
    """A wheel of an index.

    Attributes:
        version: the version in its name, with the local part.
        tags: the Pythons and platforms that accept it.
        size: its bytes, if the index says.
        package: its entry in the index.
    """

    version: Version
    tags: frozenset[Tag]
    url: str
    size: int | None
    package: DistributionPackage = field(repr=False, compare=False)


@dataclass(frozen=True)
class Listing:
    """The builds of a channel that can be asked here, oldest first.

    Attributes:
        builds: the builds that can be installed with this Python on this platform.
        left_out: the versions that can't be asked, in the same order.
        wheels: the wheel of each build, by the build's version.
        notice: what the reader of a search over these builds must know.
        cuda: the CUDA build of a release whose build here is the one for the CPU, by the version of the latter.
    """

    builds: tuple[Build, ...]
    left_out: tuple[LeftOut, ...] = ()
    wheels: dict[str, Wheel] = field(default_factory=dict, hash=False, compare=False)
    notice: str | None = None
    cuda: dict[str, Build] = field(default_factory=dict, hash=False, compare=False)


def wheels_of(files: Iterable[DistributionPackage]) -> list[Wheel]:
    """Return the wheels among the files of an index; all others are ignored."""
    found = []
    for package in files:
        try:
            _, version, _, tags = parse_wheel_filename(package.filename)
        except (InvalidWheelFilename, ValueError):
            continue
        found.append(Wheel(version, tags, package.url, package.size, package))
    return found
