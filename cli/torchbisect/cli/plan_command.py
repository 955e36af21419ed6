"""What a search will cost, said before anything is installed, written or run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import pairwise

import click

from torchbisect.bisect.search.cost import Footprint, SearchPlan, footprint, plan_search
from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.bisect.search.options import SearchOptions
from torchbisect.bisect.sources.branch_cuts import DayRange, NoDayRange, days_between_branch_cuts
from torchbisect.core.build import Build, Channel
from torchbisect.core.exit_codes import Exit
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.provider import BuildSources
from torchbisect.pipeline.script_input import read_script
from torchbisect.pipeline.search_scope import Scope, failing_build, first_scope
from torchbisect.pipeline.stages.bisect import rank


def show_plan(options: Options) -> int:
    """Print how many steps the search takes, how much it downloads and how much disk it needs; returns the exit code.

    Raises:
        InputError: what was typed can't be used.
        IndexUnreachable: the list of builds can't be had.
    """
    if options.script is not None:
        read_script(options.script)
    provider = LocalProvider(options, Display(options.verbosity))
    channels = provider.channels
    try:
        scope = first_scope(options, channels, failing_build(options, channels))
        plans = {str(scope.channel): _plan_of(scope, options, channels)}
        if scope.channel is Channel.RELEASE and (not options.channels or "nightly" in options.channels):
            days = _widest(scope.listing.builds)
            if days is not None:
                plans["nightly"] = _nightlies(days, scope.kind)
    finally:
        provider.close()
    if options.as_json:
        click.echo(json.dumps({name: asdict(one) for name, one in plans.items()}, indent=2))
        return Exit.FINISHED
    click.echo(f"{scope.channel}s, {plans[str(scope.channel)].summary}")
    if len(plans) > 1:
        click.echo(f"then for each edge the nightlies between two releases, at the widest {plans['nightly'].summary}")
    return Exit.FINISHED


def _plan_of(scope: Scope, options: Options, channels: BuildSources) -> SearchPlan:
    wheels = scope.listing.wheels
    variant = channels.variant if scope.channel is Channel.NIGHTLY else options.variant
    search_options = SearchOptions(
        bad=scope.bad,
        good=scope.good,
        kind=scope.kind,
        cached=lambda build: channels.maker(build).has(build),
        rank=rank if scope.channel is Channel.NIGHTLY else None,
    )
    return plan_search(
        scope.listing.builds,
        search_options,
        size=_weight(channels, variant),
        wheel_size=lambda build: wheels[build.version].size if build.version in wheels else None,
    )


def _weight(channels: BuildSources, variant: str | None) -> Footprint:
    """What builds weigh; those of an index of CPU builds only are told by its address."""
    return footprint("cpu" if variant is None and channels.indexes.index_url.rstrip("/").endswith("/cpu") else variant)


def _widest(releases: Sequence[Build]) -> DayRange | None:
    """The most days that lie between the branch cuts of two neighbours, as far as they are known."""
    known = []
    for older, newer in pairwise(releases):
        with suppress(NoDayRange):
            known.append(days_between_branch_cuts(older, newer))
    return max(known, key=lambda days: days.last - days.first, default=None)


def _nightlies(days: DayRange, kind: BoundaryKind) -> SearchPlan:
    """What one edge costs among the nightlies of these days, if each day has one; they are CPU builds."""
    count = (days.last - days.first).days + 1
    boundary = BoundaryKind.REGRESSION if kind is BoundaryKind.BOTH else kind
    bad, good = (count - 1, 0) if boundary is BoundaryKind.REGRESSION else (0, count - 1)
    options: SearchOptions[int] = SearchOptions(bad=bad, good=good, kind=boundary)
    return plan_search(range(count), options, size=footprint("cpu"))
