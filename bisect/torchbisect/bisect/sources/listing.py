"""What a channel offers, and what it had to leave out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version
from pypi_simple import DistributionPackage, ProjectPage

from torchbisect.core.build import Build


@dataclass(frozen=True)
class LeftOut:
    """A version that the channel has and that can't be asked here, and why in a few words."""

    version: str
    reason: str

    def __str__(self) -> str:
        return f"{self.version}: {self.reason}"


@dataclass(frozen=True)
class Wheel:
    """One file of an index.

    Attributes:
        version: the version in its name, local part included.
        tags: the Pythons and platforms that take it.
        url: where it lies, as the page resolves it.
        size: bytes, where the index says.
        package: what the index says of it.
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
        builds: what can be installed with this Python on this platform.
        left_out: what can't, in the same order.
        wheels: the file of each build, by the build's version.
        notice: what the reader of a search of these must know.
    """

    builds: tuple[Build, ...]
    left_out: tuple[LeftOut, ...] = ()
    wheels: dict[str, Wheel] = field(default_factory=dict, hash=False, compare=False)
    notice: str | None = None


def wheels_of(page: ProjectPage | Iterable[DistributionPackage]) -> list[Wheel]:
    """The wheels on an index's page; files of other kinds, or whose name is no wheel's, are passed over."""
    found = []
    for package in page.packages if isinstance(page, ProjectPage) else page:
        try:
            _, version, _, tags = parse_wheel_filename(package.filename)
        except (InvalidWheelFilename, ValueError):
            continue
        found.append(Wheel(version, tags, package.url, package.size, package))
    return found
