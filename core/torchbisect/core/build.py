"""A build: one torch that can be installed."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass

from packaging.version import Version


class Channel(str, enum.Enum):
    """Where a build comes from."""

    RELEASE = "release"
    NIGHTLY = "nightly"
    COMMIT = "commit"
    INSTALLED = "installed"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Build:
    """One torch that can be installed, or that is installed already.

    Attributes:
        version: the exact version, local part included where it is known: ``2.8.0``, ``2.14.0.dev20260212+cpu``.
        channel: where it comes from.
        date: the day of a nightly; ``None`` for a release unless the index says when it was uploaded.
        commit: the commit on main it was made from, where known.
        wheel: the wheel's own address where it is installed from that and not by version.
    """

    version: str
    channel: Channel = Channel.RELEASE
    date: datetime.date | None = None
    commit: str | None = None
    wheel: str | None = None

    @property
    def name(self) -> str:
        """The build as people write it: ``2.8.0``, ``2.14.0.dev20260212``; local parts left out."""
        return Version(self.version).public

    @property
    def requirement(self) -> str:
        """What an installer is told: always this exact build and never a neighbour."""
        return f"torch @ {self.wheel}" if self.wheel else f"torch=={self.version}"

    @property
    def minor(self) -> tuple[int, int]:
        """The first two numbers of the version, by which torch's requirements change."""
        release = Version(self.version).release
        return release[0], release[1] if len(release) > 1 else 0

    def __str__(self) -> str:
        return self.name
