"""A build: one torch that can be installed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from packaging.version import Version

from torchbisect.core.text_enum import TextEnum


class Channel(TextEnum):
    """Source of a build."""

    RELEASE = "release"
    NIGHTLY = "nightly"
    COMMIT = "commit"
    INSTALLED = "installed"


@dataclass(frozen=True)
class Build:
    """One torch that can be installed, or that is installed already.

    Attributes:
        version: the exact version, with its local part where that is known: ``2.8.0``, ``2.14.0.dev20260212+cpu``.
        channel: the source of the build.
        date: the day of a nightly; for a release the day of its upload, or ``None`` if the index doesn't give it.
        commit: the commit on main that it was made from, where known.
        wheel: the wheel's address, if the build is installed from there and not by version.
    """

    version: str
    channel: Channel = Channel.RELEASE
    date: datetime.date | None = None
    commit: str | None = None
    wheel: str | None = None

    @property
    def name(self) -> str:
        """The version without its local part, as people write it: ``2.8.0``, ``2.14.0.dev20260212``."""
        return Version(self.version).public

    @property
    def requirement(self) -> str:
        """The requirement for an installer; it allows this exact build and no other."""
        return f"torch @ {self.wheel}" if self.wheel else f"torch=={self.version}"

    @property
    def minor(self) -> tuple[int, int]:
        """The first two numbers of the version; torch's requirements change with them."""
        release = Version(self.version).release
        return release[0], release[1] if len(release) > 1 else 0

    def __str__(self) -> str:
        return self.name
