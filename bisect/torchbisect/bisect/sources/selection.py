"""Which build the user means: what may be typed for one, and what is said when there is none."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError

_DAY = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")
_NIGHTLY = re.compile(r"\.dev(\d{8})\b")
_FORMS = "a release (2.8.0), a nightly (2.14.0.dev20260212 or 2026-02-12) or `installed`"


@dataclass(frozen=True)
class BuildSelector:
    """What the user typed for a build, understood but not looked up.

    Attributes:
        text: as it was typed.
        version: the version, for a release or a nightly's full name.
        date: the day, for a nightly.
        installed: the torch that is there already.
    """

    text: str
    version: Version | None = None
    date: datetime.date | None = None
    installed: bool = False

    @property
    def channel(self) -> Channel:
        """The channel that has such a build."""
        if self.installed:
            return Channel.INSTALLED
        return Channel.RELEASE if self.date is None else Channel.NIGHTLY

    def matches(self, build: Build) -> bool:
        """Whether it means this build; a local part counts only if it was typed."""
        if self.installed:
            return build.channel is Channel.INSTALLED
        if self.version is None:
            return build.channel is Channel.NIGHTLY and build.date == self.date
        own = Version(build.version)
        return own == self.version if self.version.local else Version(own.public) == self.version


def parse_build(text: str) -> BuildSelector:
    """Understand what was typed for a build.

    Raises:
        InputError: if it is none of the forms, or names a day that isn't in the calendar.
    """
    typed = text.strip()
    if typed == "installed":
        return BuildSelector(typed, installed=True)
    day = _DAY.fullmatch(typed)
    if day:
        return BuildSelector(typed, date=_date("".join(day.groups()), typed))
    try:
        version = Version(typed.removeprefix("torch==").removeprefix("torch-"))
    except InvalidVersion:
        raise InputError(f"{typed!r} is no build of torch: give {_FORMS}") from None
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
    """The build that was typed.

    Raises:
        InputError: if it is no build, or is not among ``builds``; the nearest ones are named.
    """
    selector = parse_build(text)
    found = [build for build in builds if selector.matches(build)]
    if found:
        return found[-1]
    raise InputError(
        f"there is no torch {selector.text} for this Python and platform{_nearest_words(builds, selector)}"
    )


def _nearest_words(builds: Sequence[Build], selector: BuildSelector) -> str:
    same = [build for build in builds if build.channel is selector.channel]
    if not same:
        return "; `torchbisect builds` lists what there is"
    below = [build for build in same if _before(build, selector)]
    above = [build for build in same if build not in below]
    names = [str(build) for build in (*below[-2:], *above[:2])]
    return f"; the nearest are {', '.join(names)} (`torchbisect builds` lists all)"


def _before(build: Build, selector: BuildSelector) -> bool:
    if selector.date is not None:
        return build.date is not None and build.date < selector.date
    return selector.version is not None and Version(build.version) < selector.version


def order(build: Build) -> tuple[datetime.date, Version] | Version:
    """The key by which the builds of one channel are ordered: nightlies by day, releases by version."""
    version = Version(build.version)
    if build.channel is Channel.NIGHTLY and build.date is not None:
        return build.date, version
    return version


def check_order(good: Build, bad: Build, kind: BoundaryKind | str = BoundaryKind.BOTH) -> None:
    """Refuse ends on the wrong side of each other.

    Raises:
        InputError: if they are the same build, or a regression's good end is newer than its bad end (or for a fix the
            reverse). Builds of two channels are not compared.
    """
    kind = BoundaryKind(kind)
    if good == bad:
        raise InputError(f"--good and --bad are both {good}: a search needs two different builds")
    if (good.channel is Channel.NIGHTLY) is not (bad.channel is Channel.NIGHTLY):
        return
    newer: bool = order(good) > order(bad)  # type: ignore[operator]  # both of one channel, so of one type
    if newer and kind is BoundaryKind.REGRESSION:
        raise InputError(
            f"--good {good} is newer than --bad {bad}: exchange them, or say --find fix to find where it was mended"
        )
    if not newer and kind is BoundaryKind.FIX:
        raise InputError(
            f"--good {good} is older than --bad {bad}: exchange them, or say --find regression to find where it broke"
        )
