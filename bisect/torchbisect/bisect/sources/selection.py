"""Selection of a build by the text that the user typed."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import Version

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError
from torchbisect.core.printable import one_line

_DAY = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")
_NIGHTLY = re.compile(r"\.dev(\d{8})\b")
_FORMS = "a release (2.8.0), a nightly (2.14.0.dev20260212 or 2026-02-12) or `installed`"


@dataclass(frozen=True)
class BuildSelector:
    """The build that the user typed, parsed but not looked up.

    Attributes:
        text: the text as typed.
        version: the version, for a release or the full name of a nightly.
        date: the day, for a nightly.
        installed: the torch that is installed already.
    """

    text: str
    version: Version | None = None
    date: datetime.date | None = None
    installed: bool = False

    @property
    def channel(self) -> Channel:
        """The channel of such a build."""
        if self.installed:
            return Channel.INSTALLED
        return Channel.RELEASE if self.date is None else Channel.NIGHTLY

    def matches(self, build: Build) -> bool:
        """Return true for a build that fits; builds of another variant than the one that was typed fit too."""
        if self.installed:
            return build.channel is Channel.INSTALLED
        if self.version is None:
            return build.channel is Channel.NIGHTLY and build.date == self.date
        return Version(Version(build.version).public) == Version(self.version.public)

    def best_of(self, builds: Sequence[Build]) -> Build | None:
        """Return the newest build that fits, rather one of the variant that was typed; ``None`` if none fits."""
        found = [build for build in builds if self.matches(build)]
        exact = [build for build in found if Version(build.version) == self.version]
        return next(reversed(exact or found), None)


def parse_build(text: str) -> BuildSelector:
    """Parse the text for a build. Raise ``InputError`` if it has no known form, or its day isn't in the calendar."""
    typed = text.strip()
    if typed == "installed":
        return BuildSelector(typed, installed=True)
    day = _DAY.fullmatch(typed)
    if day:
        return BuildSelector(typed, date=_date("".join(day.groups()), typed))
    try:
        version = Version(typed.removeprefix("torch==").removeprefix("torch-"))
    except ValueError:  # also for a number of thousands of digits
        raise InputError(f"{one_line(typed, 80)!r} is no build of torch: give {_FORMS}") from None
    nightly = _NIGHTLY.search(str(version))
    if version.dev is not None and not nightly:
        raise InputError(f"{typed!r} has no day in it: a nightly is written 2.14.0.dev20260212 or 2026-02-12")
    return BuildSelector(typed, version, _date(nightly.group(1), typed) if nightly else None)


def _date(digits: str, typed: str) -> datetime.date:
    try:
        return datetime.datetime.strptime(digits, "%Y%m%d").date()
    except ValueError:
        raise InputError(f"{typed!r} names a day that isn't in the calendar: write it as 2026-02-12") from None


def find_build(builds: Sequence[Build], text: str) -> Build:
    """Return the build that was typed.

    Raise ``InputError`` if the text is no build, or names none of ``builds``; the message names the nearest.
    """
    selector = parse_build(text)
    found = selector.best_of(builds)
    if found is not None:
        return found
    raise InputError(
        f"there is no torch {selector.text} for this Python and platform{_nearest_builds(builds, selector)}"
    )


def _nearest_builds(builds: Sequence[Build], selector: BuildSelector) -> str:
    same = [build for build in builds if build.channel is selector.channel]
    if not same:
        return "; `torchbisect builds` lists what there is"
    below = [build for build in same if _is_older(build, selector)]
    above = [build for build in same if build not in below]
    names = [str(build) for build in (*below[-2:], *above[:2])]
    return f"; the nearest are {', '.join(names)} (`torchbisect builds` lists all)"


def _is_older(build: Build, selector: BuildSelector) -> bool:
    if selector.date is not None:
        return build.date is not None and build.date < selector.date
    return selector.version is not None and Version(build.version) < selector.version


def sort_key(build: Build) -> tuple[datetime.date, Version] | Version:
    """Return the key that sorts builds of one channel: nightlies by day, releases by version."""
    version = Version(build.version)
    if build.channel is Channel.NIGHTLY and build.date is not None:
        return build.date, version
    return version


def check_ends(good: Build, bad: Build, kind: BoundaryKind = BoundaryKind.BOTH) -> None:
    """Check that the good and the bad end fit the kind of boundary; builds of two channels are not compared.

    Raise ``InputError`` if they are the same build, or the good end of a regression is newer than its bad end, or the
    good end of a fix is older.
    """
    if good == bad:
        raise InputError(f"--good and --bad are both {good}: a search needs two different builds")
    if (good.channel is Channel.NIGHTLY) is not (bad.channel is Channel.NIGHTLY):
        return
    newer: bool = sort_key(good) > sort_key(bad)  # type: ignore[operator]  # both of one channel, so of one type
    if newer and kind is BoundaryKind.REGRESSION:
        raise InputError(
            f"--good {good} is newer than --bad {bad}: exchange them, or pass --find fix to find where it was fixed"
        )
    if not newer and kind is BoundaryKind.FIX:
        raise InputError(
            f"--good {good} is older than --bad {bad}: exchange them, or pass --find regression to find where it broke"
        )
