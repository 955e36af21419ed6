"""The bisect stage: asks builds through the probe, from releases to nightlies, and says what goes on."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchbisect.bisect.search.cost import footprint
from torchbisect.bisect.search.find import Edge, Finding, Findings, Tested, Which, find
from torchbisect.bisect.search.prefetch import Prefetcher
from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.nightly_minors import between_cuts
from torchbisect.containers.store.disk import human
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable
from torchbisect.pipeline.build_oracle import Asker
from torchbisect.pipeline.flaky_search import Rate, search_runs
from torchbisect.pipeline.partial_wheel_midpoints import Contradicted, Thin, may_be_thin
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
    findings: Findings[Build]


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
        self, session: Session, failing: Build, component: str | None = None, rate: Rate | None = None
    ) -> None:
        self._session = session
        self._failing = failing
        self._component = component
        self._answered = self._total = 0
        self._rate = rate or Rate(1, 1)
        self.flaky = not self._rate.always
        self.asker = Asker(session)

    def search(self, question: Question) -> Level:
        """Find where it broke and where it was mended, in the coarsest channel that was asked for.

        Raises:
            InputError: ``--good`` and ``--bad`` can't be what they are said to be.
            MachineError: the search could not go on.
        """
        scope = first_scope(self._session.options, self._session.channels, self._failing)
        return Level(scope.channel, scope.listing, self._find(scope, question))

    def has_finer(self, level: Level, edge: Edge[Build]) -> bool:
        """Whether an edge is one between two releases, and nightlies may be looked at."""
        channels = self._session.options.channels
        return level.channel is Channel.RELEASE and not edge.open and (not channels or "nightly" in channels)

    def finer(self, edge: Edge[Build], question: Question) -> Level | str:
        """Look for an edge between two releases among the nightlies, or say in a line why that can't be.

        Raises:
            IndexUnreachable: nightlies were asked for by name and their index did not answer.
        """
        options = self._session.options
        assert edge.before is not None
        assert edge.after is not None
        try:
            days = between_cuts(edge.before, edge.after, self._session.channels.listed_nightlies)
            if isinstance(days, str):
                return days
            listing = self._session.channels.nightlies_between(days.first, days.last)
        except IndexUnreachable as error:
            if "nightly" in options.channels:
                raise
            self._session.display.detail(str(error))
            return "the nightlies between them were not searched: their index can't be reached from here"
        if len(listing.builds) < 2:
            return f"no nightlies to search from {days.words}"
        self._session.display.result(f"{len(listing.builds)} nightlies of {days.words}")
        first, last = 0, len(listing.builds) - 1
        good, bad = (first, last) if edge.which is Which.REGRESSION else (last, first)
        scope = Scope(Channel.NIGHTLY, listing, bad, good, edge.which)
        return Level(Channel.NIGHTLY, listing, self._find(scope, question))

    def ask(self, build: Build, question: Question) -> Finding:
        """What this build shows; from the journal if it was asked before."""
        return self.asker.ask(build, question)

    def _find(self, scope: Scope, question: Question) -> Findings[Build]:
        found, notice = self._found(scope, question), scope.listing.notice
        return replace(found, notices=(*found.notices, notice)) if notice else found

    def _found(self, scope: Scope, question: Question) -> Findings[Build]:
        if not self.flaky:
            found = self._found_surely(scope, question)
            # With --repeat a build may say so even if the failing one did the same each time it was looked at.
            self.flaky = any(tested.reason == "flaky" for tested in found.tested)
            if not self.flaky:
                return found
        self._session.display.result("the script is flaky: builds are asked again and again till one is likely enough")
        builds, rate = scope.listing.builds, self._rate
        return search_runs(
            self._session, self.asker, builds, question, rate, bad=scope.bad, good=scope.good, which=scope.which
        )

    def _found_surely(self, scope: Scope, question: Question) -> Findings[Build]:
        """With thin steps where they will do, and with whole installs where these say otherwise."""
        if may_be_thin(self._session, scope.listing.builds, self._component):
            thin = Thin(self._session, self.asker, scope.listing, question)
            try:
                return _with_notice(self._find_surely(scope, question, thin), thin)
            except Contradicted as error:
                self._session.display.warn(f"{error} says otherwise when it is installed whole: asking whole installs")
        return self._find_surely(scope, question)

    def _find_surely(self, scope: Scope, question: Question, thin: Thin | None = None) -> Findings[Build]:
        """The search for a mismatch that is there each time; with ``thin`` all but the ends by their Python alone."""
        channels, builds = self._session.channels, scope.listing.builds
        self._answered, self._total = 0, _estimate(len(builds), scope.which)
        whole_ends = {builds[end] for end in (scope.bad, scope.good) if end is not None}

        def ask(build: Build) -> Finding:
            return self.asker.ask(build, question) if thin is None or build in whole_ends else thin.ask(build)

        def again(build: Build) -> Finding:
            return thin.ask_again(build) if thin else self.asker.ask(build, question, again=True)

        def fetch(build: Build, cancel: threading.Event) -> None:
            channels.maker(build).prefetch(build, cancel)

        # A thin step needs no install, so none is made ready for it.
        with Prefetcher(fetch, lambda running: thin is None and self._has_room(running, scope.channel)) as prefetcher:
            return find(
                builds,
                ask,
                bad=scope.bad,
                good=scope.good,
                find=scope.which,
                cached=lambda build: channels.maker(build).has(build),
                rank=rank if builds[0].channel is Channel.NIGHTLY else None,
                known=thin.known if thin else lambda build: self.asker.known(build, question),
                jobs=self._session.options.jobs or 1,
                ask_again=again,
                both_again=thin is not None,
                prefetch=prefetcher,
                on_answer=self._say,
            )

    def _has_room(self, running: int, channel: Channel) -> bool:
        """Whether one build more can be fetched beside those that are, and the one at work still has its room."""
        channels = self._session.channels
        weight = footprint(channels.variant if channel is Channel.NIGHTLY else self._session.options.variant)
        one = weight.download + weight.installed + weight.shared_download + weight.shared_installed
        return channels.cache.room() >= (running + 2) * one

    def _say(self, tested: Tested[Build]) -> None:
        self._answered += 1
        text = f"torch {tested.item}: {tested.status}" + (f" ({tested.reason})" if tested.reason else "")
        left = max(0, self._total - self._answered)
        self._session.display.result(
            text + (" again" if tested.again else "") + (f"; about {left} more" if left else "")
        )
        if tested.detail:
            self._session.display.detail(tested.detail)


def edge_builds(findings: Findings[Build]) -> Sequence[Build]:
    """The builds on both sides of every edge that was found, without repeats."""
    found: dict[str, Build] = {}
    for edge in (findings.regression, findings.fix):
        for build in (edge.before, edge.after) if edge else ():
            if build is not None:
                found[build.name] = build
    return tuple(found.values())


def telling_builds(findings: Findings[Build]) -> Sequence[Build]:
    """Where a shrunk script shows that it is not what the original was: the edges, and what is untestable there."""
    found = {build.name: build for build in edge_builds(findings)}
    for edge in (findings.regression, findings.fix):
        if edge is not None and edge.between:
            # The one beside the bad end: from there on the search could not go on.
            nearest = edge.between[-1 if edge.which is Which.REGRESSION else 0].item
            found.setdefault(nearest.name, nearest)
    return tuple(found.values())


def _with_notice(findings: Findings[Build], thin: Thin) -> Findings[Build]:
    if not thin.asked:
        return findings
    notice = (
        f"{len(thin.asked)} of the builds were asked by their Python alone ({human(thin.fetched)} fetched for them); "
        "both ends of what was found were installed whole"
    )
    return replace(findings, notices=(*findings.notices, notice))


def rank(build: Build) -> int:
    """A nightly's day: midpoints then are the same few days in every search of a range."""
    return build.date.toordinal() if build.date else 0


def _estimate(count: int, which: Which) -> int:
    sides = 2 if which is Which.BOTH else 1
    return 1 + sides * (math.ceil(math.log2(max(2, count))) + 1)
