"""The scope of a search: the builds that the user named, and the range of builds that is searched first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.selection import check_ends, find_build, parse_build
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError, MachineError
from torchbisect.pipeline.nearest_build import nearest_build
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.provider import BuildSources, Notify


@dataclass(frozen=True)
class Scope:
    """The builds that are searched, and their ends.

    Attributes:
        channel: the channel of the builds.
        bad: the position of the build believed to be bad.
        good: the position of the build believed to be good, or ``None`` where the user named none.
        kind: the boundaries that are searched for.
    """

    channel: Channel
    listing: Listing
    bad: int
    good: int | None
    kind: BoundaryKind


def failing_build(options: Options, sources: BuildSources, notify: Notify = lambda text: None) -> Build:
    """Return the build where the script fails: that of ``--torch``, else of ``--bad``, else the one installed.

    Args:
        notify: is told if that is not the very build that was typed, and if none was.

    Raises:
        InputError: there is no such build.
        MachineError: no build is named and none can be installed.
    """
    wanted = options.torch or options.bad
    if wanted is not None and wanted != "installed":
        if options.nearest and options.torch:
            build, reason = nearest_build(sources, wanted)
        else:
            build, reason = named_build(options, sources, wanted), None
        other = reason or _other_variant(options, build, wanted)
        if other is not None:
            notify(f"torch {wanted} is asked for; {other}; {build.version} is run")
        return build
    interpreter = sources.interpreter
    if interpreter.installed_torch is not None:
        return Build(interpreter.installed_torch, Channel.INSTALLED)
    builds = sources.releases.builds
    if wanted is not None:
        example = builds[-1] if builds else "2.8.0"
        raise InputError(f"--torch installed: {interpreter.path} has no torch; name a build, such as --torch {example}")
    if not builds:
        raise MachineError(f"no torch for {interpreter.path} in {sources.indexes}: name another --python")
    newest = builds[-1]
    notify(f"no --torch is named and this Python has none: torch {newest}, the newest release, is installed and run")
    return newest


def _other_variant(options: Options, build: Build, text: str) -> str | None:
    """Return a remark if a variant was typed with the version, and the build may be of another one."""
    typed = parse_build(text).version
    if typed is None or typed.local is None or typed.local == Version(build.version).local:
        return None
    return f"the variant is {options.variant}" if options.variant else "the index does not offer that variant here"


def named_build(options: Options, sources: BuildSources, text: str) -> Build:
    """Return the build that a user's text names. Raises ``InputError`` if there is none."""
    selector = parse_build(text)
    if selector.channel is Channel.NIGHTLY:
        return sources.nightly(selector)
    if selector.installed:
        return failing_build(replace(options, torch="installed"), sources)
    return find_build(sources.releases.builds, text)


def reference_build(options: Options, sources: BuildSources) -> Build:
    """Return the build that others are measured against. Raises ``InputError`` if there is none."""
    return named_build(options, sources, options.against or options.good or "installed")


def first_scope(options: Options, sources: BuildSources, failing: Build) -> Scope:
    """Return the scope that is searched first: the builds of the coarsest channel that was asked for.

    Args:
        failing: the build where the script is known to fail.

    Raises:
        InputError: ``--good`` or ``--bad`` names no build of the channel, or they are in the wrong order.
        IndexUnreachable: the channel's index did not answer.
    """
    nightly = options.channels and "release" not in options.channels
    channel = Channel.NIGHTLY if nightly else Channel.RELEASE
    listing = _nightlies(options, sources, failing) if nightly else sources.releases
    builds = listing.builds
    bad = _position(builds, named_build(options, sources, options.bad) if options.bad else failing)
    good = _position(builds, named_build(options, sources, options.good)) if options.good else None
    if good is None and options.measure is not None:
        good = _older_reference(builds[:bad], reference_build(options, sources))
    kind = BoundaryKind(options.find)
    if good is not None:
        check_ends(builds[good], builds[bad], kind)
    return Scope(channel, listing, bad, good, kind)


def _older_reference(older: Sequence[Build], reference: Build) -> int | None:
    """Return the position of the reference build among those older than the bad one; it is no worse than itself."""
    return next((position for position, build in enumerate(older) if build.name == reference.name), None)


def _nightlies(options: Options, sources: BuildSources, failing: Build) -> Listing:
    """The nightlies of the index's page, extended to the ends that the user named."""
    listed = sources.listed_nightlies
    ends = [named_build(options, sources, text) for text in (options.good, options.bad) if text]
    ends += [failing] if options.torch else []
    days = [build.date for build in (*ends, *listed.builds) if build.date is not None]
    named = [build.date for build in ends if build.date is not None]
    if not days:
        raise InputError(f"there are no nightlies ({sources.variant}) for this Python: name another --variant")
    page = {build.date for build in listed.builds}
    if all(day in page for day in named):
        return listed
    return sources.nightlies_between(min(days), max(days))


def _position(builds: Sequence[Build], build: Build) -> int:
    """The position of a build in its channel; of an installed one that of the release it was made from."""
    for position, other in enumerate(builds):
        if other.name == build.name:
            return position
    if build.channel is not Channel.INSTALLED or not builds:
        raise InputError(f"torch {build} isn't among the builds that can be asked: see torchbisect builds")
    older = [position for position, other in enumerate(builds) if other.minor <= build.minor]
    return older[-1] if older else 0
