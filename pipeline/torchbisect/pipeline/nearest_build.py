"""The nearest build that can be had to one that an issue states: a nightly that is gone, or one built from source."""

from __future__ import annotations

import datetime

from packaging.version import Version

from torchbisect.bisect.sources.selection import BuildSelector, find_build, parse_build
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable, InputError, MachineError
from torchbisect.pipeline.provider import BuildSources

#: A nightly may be this many days older or newer than the one that is stated.
_DAYS = datetime.timedelta(days=3)


def nearest_build(sources: BuildSources, text: str) -> tuple[Build, str | None]:
    """Return the build that a text states or the nearest, and why it is another one.

    The nearest to a nightly or a source build is a nightly of these days, else the first release made from main later.

    Args:
        text: a build as ``--torch`` takes it, or ``nightly``, ``main`` or ``main@COMMIT``.

    Raises:
        MachineError: no torch can be installed here.
    """
    try:
        selector = parse_build(text)
    except InputError:
        reason = "that is a commit of the main branch" if "@" in text else "it has neither a version nor a day"
        return _newest(sources), reason
    try:
        if selector.channel is Channel.NIGHTLY:
            return sources.nightly(selector), None
        return find_build(sources.releases.builds, text), None
    except (InputError, IndexUnreachable):
        pass
    found = _nightly_of_these_days(sources, selector.date) if selector.date else None
    return found or _release(sources, selector), _reason(selector)


def _reason(selector: BuildSelector) -> str:
    version = selector.version
    if selector.channel is Channel.NIGHTLY:
        return "that nightly is gone"
    if version is not None and version.pre is not None:
        return "that release candidate is gone" if version.pre[0] == "rc" else "that is a build from source"
    return "this Python and platform have no such release"


def _newest(sources: BuildSources) -> Build:
    try:
        nightlies = sources.listed_nightlies.builds
    except IndexUnreachable:
        nightlies = ()
    return nightlies[-1] if nightlies else _releases(sources)[-1]


def _nightly_of_these_days(sources: BuildSources, day: datetime.date) -> Build | None:
    try:
        builds = sources.nightlies_between(day - _DAYS, day + _DAYS).builds
    except (InputError, IndexUnreachable):
        return None
    near = [build for build in builds if build.date is not None and abs(build.date - day) <= _DAYS]
    return min(near, key=lambda build: abs((build.date or day) - day), default=None)


def _release(sources: BuildSources, selector: BuildSelector) -> Build:
    """Return the first release that is as new as the stated build, else the newest release."""
    builds = _releases(sources)
    if selector.version is not None:
        base = Version(selector.version.base_version)
        newer = [build for build in builds if Version(Version(build.version).public) >= base]
    else:
        newer = [build for build in builds if build.date and selector.date and build.date >= selector.date]
    return newer[0] if newer else builds[-1]


def _releases(sources: BuildSources) -> tuple[Build, ...]:
    builds = tuple(sources.releases.builds)
    if not builds:
        raise MachineError(f"no torch for {sources.interpreter.path} in {sources.indexes}: name another --python")
    return builds
