"""The bisect stage: asks builds through the probe, from releases to nightlies, and says what goes on."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchbisect.bisect.search.cost import footprint
from torchbisect.bisect.search.evidence import AskedBuild, Boundary, BoundaryKind, BuildAnswer, SearchResult
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.options import SearchOptions
from torchbisect.bisect.search.prefetch import Prefetcher
from torchbisect.bisect.sources.branch_cuts import days_between_branch_cuts
from torchbisect.bisect.sources.listing import Listing
from torchbisect.containers.store.disk import format_bytes
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.flaky_search import MismatchRate, search_flaky
from torchbisect.pipeline.partial_wheel_midpoints import (
    PartialWheelContradicted,
    PartialWheelOracle,
    partial_wheels_usable,
)
from torchbisect.pipeline.search_scope import Scope, first_scope
from torchbisect.pipeline.session import Session
from torchbisect.probe.question import Question


@dataclass(frozen=True)
class Level:
    """What one channel's search came to.

    Attributes:
        channel: the channel.
        listing: what it offered.
        findings: what was found there.
    """

    channel: Channel
    listing: Listing
    result: SearchResult[Build]


class Bisection:
    """Searches builds with one question.

    Attributes:
        asker: asks each build, and holds what was read back from it.
        flaky: builds don't do the same each time, so they are asked by single runs.

    Args:
        session: what the run works with.
        failing: the build where the script is known to fail.
        component: the compiler stage that localisation named.
        rate: how often the failing build showed the mismatch.
    """

    def __init__(
        self, session: Session, failing: Build, component: str | None = None, rate: MismatchRate | None = None
    ) -> None:
        self._session = session
        self._failing = failing
        self._component = component
        self._answered = self._total = 0
        self._rate = rate or MismatchRate(1, 1)
        self.flaky = not self._rate.always
        self.build_oracle = BuildOracle(session)

    def search(self, question: Question) -> Level:
        """Find where it broke and where it was mended, in the coarsest channel that was asked for.

        Raises:
            InputError: ``--good`` and ``--bad`` can't be what they are said to be.
            MachineError: the search could not go on.
        """
        scope = first_scope(self._session.options, self._session.channels, self._failing)
        return Level(scope.channel, scope.listing, self._find(scope, question))

    def has_finer(self, level: Level, boundary: Boundary[Build]) -> bool:
        """Whether an edge is one between two releases, and nightlies may be looked at."""
        channels = self._session.options.channels
        return level.channel is Channel.RELEASE and not boundary.open and (not channels or "nightly" in channels)

    def finer(self, boundary: Boundary[Build], question: Question) -> Level | str:
        """Look for an edge between two releases among the nightlies, or say in a line why that can't be.

        Raises:
            IndexUnreachable: nightlies were asked for by name and their index did not answer.
        """
        options = self._session.options
        assert boundary.before is not None
        assert boundary.after is not None
        try:
            days = days_between_branch_cuts(boundary.before, boundary.after, self._session.channels.listed_nightlies)
            if isinstance(days, str):
                return days
            listing = self._session.channels.nightlies_between(days.first, days.last)
        except IndexUnreachable as error:
            if "nightly" in options.channels:
                raise
            self._session.display.detail(str(error))
            return "the nightlies between them were not searched: their index can't be reached from here"
        if len(listing.builds) < 2:
            return f"no nightlies to search from {days.description}"
        self._session.display.result(f"{len(listing.builds)} nightlies of {days.description}")
        first, last = 0, len(listing.builds) - 1
        good, bad = (first, last) if boundary.kind is BoundaryKind.REGRESSION else (last, first)
        scope = Scope(Channel.NIGHTLY, listing, bad, good, boundary.kind)
        return Level(Channel.NIGHTLY, listing, self._find(scope, question))

    def ask(self, build: Build, question: Question) -> BuildAnswer:
        """What this build shows; from the journal if it was asked before."""
        return self.build_oracle.ask(build, question)

    def _find(self, scope: Scope, question: Question) -> SearchResult[Build]:
        found, notice = self._found(scope, question), scope.listing.notice
        return replace(found, notices=(*found.notices, notice)) if notice else found

    def _found(self, scope: Scope, question: Question) -> SearchResult[Build]:
        if not self.flaky:
            found = self._found_surely(scope, question)
            # With --repeat a build may say so even if the failing one did the same each time it was looked at.
            self.flaky = any(tested.reason == "flaky" for tested in found.tested)
            if not self.flaky:
                return found
        self._session.display.result("the script is flaky: builds are asked again and again till one is likely enough")
        return search_flaky(self._session, self.build_oracle, scope, question, self._rate)

    def _found_surely(self, scope: Scope, question: Question) -> SearchResult[Build]:
        """With thin steps where they will do, and with whole installs where these say otherwise."""
        if partial_wheels_usable(self._session, scope.listing.builds, self._component):
            thin = PartialWheelOracle(self._session, self.build_oracle, scope.listing, question)
            try:
                return _with_notice(self._find_surely(scope, question, thin), thin)
            except PartialWheelContradicted as error:
                self._session.display.warn(f"{error} says otherwise when it is installed whole: asking whole installs")
        return self._find_surely(scope, question)

    def _find_surely(
        self, scope: Scope, question: Question, thin: PartialWheelOracle | None = None
    ) -> SearchResult[Build]:
        """The search for a mismatch that is there each time; with ``thin`` all but the ends by their Python alone."""
        channels, builds = self._session.channels, scope.listing.builds
        self._answered, self._total = 0, _estimate(len(builds), scope.kind)
        whole_ends = {builds[end] for end in (scope.bad, scope.good) if end is not None}

        def ask(build: Build) -> BuildAnswer:
            return self.build_oracle.ask(build, question) if thin is None or build in whole_ends else thin.ask(build)

        def again(build: Build) -> BuildAnswer:
            return thin.ask_again(build) if thin else self.build_oracle.ask(build, question, again=True)

        def fetch(build: Build, cancel: threading.Event) -> None:
            channels.maker(build).prefetch(build, cancel)

        options = SearchOptions(
            bad=scope.bad,
            good=scope.good,
            kind=scope.kind,
            cached=lambda build: channels.maker(build).has(build),
            rank=rank if builds[0].channel is Channel.NIGHTLY else None,
            recheck="good" if thin is None else "both",
        )
        # A thin step needs no install, so none is made ready for it.
        with Prefetcher(fetch, lambda running: thin is None and self._has_room(running, scope.channel)) as prefetcher:
            return find_boundaries(
                builds,
                ask,
                options,
                known=thin.known if thin else lambda build: self.build_oracle.known(build, question),
                jobs=self._session.options.jobs or 1,
                ask_again=again,
                prefetch=prefetcher,
                on_answer=self._say,
            )

    def _has_room(self, running: int, channel: Channel) -> bool:
        """Whether one build more can be fetched beside those that are, and the one at work still has its room."""
        channels = self._session.channels
        weight = footprint(channels.variant if channel is Channel.NIGHTLY else self._session.options.variant)
        one = weight.download + weight.installed + weight.shared_download + weight.shared_installed
        return channels.cache.available() >= (running + 2) * one

    def _say(self, tested: AskedBuild[Build]) -> None:
        self._answered += 1
        text = f"torch {tested.item}: {tested.status}" + (f" ({tested.reason})" if tested.reason else "")
        left = max(0, self._total - self._answered)
        self._session.display.result(
            text + (" again" if tested.recheck else "") + (f"; about {left} more" if left else "")
        )
        if tested.detail:
            self._session.display.detail(tested.detail)


def boundary_builds(result: SearchResult[Build]) -> Sequence[Build]:
    """The builds on both sides of every edge that was found, without repeats."""
    found: dict[str, Build] = {}
    for boundary in (result.regression, result.fix):
        for build in (boundary.before, boundary.after) if boundary else ():
            if build is not None:
                found[build.name] = build
    return tuple(found.values())


def telling_builds(result: SearchResult[Build]) -> Sequence[Build]:
    """Where a shrunk script shows that it is not what the original was: the edges, and what is untestable there."""
    found = {build.name: build for build in boundary_builds(result)}
    for boundary in (result.regression, result.fix):
        if boundary is not None and boundary.between:
            # The one beside the bad end: from there on the search could not go on.
            nearest = boundary.between[-1 if boundary.kind is BoundaryKind.REGRESSION else 0].item
            found.setdefault(nearest.name, nearest)
    return tuple(found.values())


def _with_notice(result: SearchResult[Build], thin: PartialWheelOracle) -> SearchResult[Build]:
    if not thin.asked:
        return result
    notice = (
        f"{len(thin.asked)} of the builds were asked by their Python alone ({format_bytes(thin.fetched)} fetched "
        "for them); both ends of what was found were installed whole"
    )
    return replace(result, notices=(*result.notices, notice))


def rank(build: Build) -> int:
    """A nightly's day: midpoints then are the same few days in every search of a range."""
    return build.date.toordinal() if build.date else 0


def _estimate(count: int, kind: BoundaryKind) -> int:
    sides = 2 if kind is BoundaryKind.BOTH else 1
    return 1 + sides * (math.ceil(math.log2(max(2, count))) + 1)
