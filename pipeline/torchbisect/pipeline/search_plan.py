"""Plan the searches of a run (``--plan``): builds, installs and bytes, before anything is installed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from packaging.version import Version

from torchbisect.bisect.search.cost import SearchPlan, plan_search
from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.bisect.search.search_options import SearchOptions
from torchbisect.bisect.sources.branch_cuts import DayRange, NoDayRange, days_between_branch_cuts
from torchbisect.core.build import Build, Channel
from torchbisect.core.footprint import Footprint, footprint
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.provider import BuildSources
from torchbisect.pipeline.search_scope import Scope, failing_build, first_scope
from torchbisect.pipeline.stages.bisect import rank


def plan_searches(options: Options, sources: BuildSources) -> dict[Channel, SearchPlan]:
    """Return the plan of each search, the coarsest channel first.

    The plan of the nightlies is for the widest gap between two releases, and for one boundary.
    Raises ``InputError`` if an option names no build, ``IndexUnreachable`` if an index did not answer.
    """
    scope = first_scope(options, sources, failing_build(options, sources))
    plans = {scope.channel: _first_plan(scope, options, sources)}
    if scope.channel is Channel.RELEASE and (not options.channels or "nightly" in options.channels):
        days = _widest_gap(scope.listing.builds)
        if days is not None:
            plans[Channel.NIGHTLY] = _nightly_plan(days, scope.kind)
    return plans


def _first_plan(scope: Scope, options: Options, sources: BuildSources) -> SearchPlan:
    wheels = scope.listing.wheels
    newest = Version(scope.listing.builds[-1].version)
    variant = sources.variant if scope.channel is Channel.NIGHTLY else options.variant or newest.local
    search_options = SearchOptions(
        bad=scope.bad,
        good=scope.good,
        kind=scope.kind,
        cached=lambda build: sources.maker(build).has(build),
        rank=rank if scope.channel is Channel.NIGHTLY else None,
    )
    return plan_search(
        scope.listing.builds,
        search_options,
        size=_footprint(sources, variant),
        wheel_size=lambda build: wheels[build.version].size if build.version in wheels else None,
    )


def _footprint(sources: BuildSources, variant: str | None) -> Footprint:
    """Return the size of a build; the address of an index tells if it has CPU builds only."""
    for_cpu = (sources.indexes.index_url or "").rstrip("/").endswith("/cpu")
    return footprint("cpu" if variant is None and for_cpu else variant)


def _widest_gap(releases: Sequence[Build]) -> DayRange | None:
    """Return the most days between the branch cuts of two neighbors, or ``None`` if no cut is known."""
    known = []
    for older, newer in pairwise(releases):
        with suppress(NoDayRange):
            known.append(days_between_branch_cuts(older, newer))
    return max(known, key=lambda days: days.last - days.first, default=None)


def _nightly_plan(days: DayRange, kind: BoundaryKind) -> SearchPlan:
    """Return the plan of one boundary among the nightlies of these days, one a day, all of them CPU builds."""
    count = (days.last - days.first).days + 1
    boundary = BoundaryKind.REGRESSION if kind is BoundaryKind.BOTH else kind
    bad, good = (count - 1, 0) if boundary is BoundaryKind.REGRESSION else (0, count - 1)
    options: SearchOptions[int] = SearchOptions(bad=bad, good=good, kind=boundary)
    return plan_search(range(count), options, size=footprint("cpu"))
