"""The bisect stage: search the builds of a channel for the boundaries of the mismatch."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from torchbisect.bisect.search.boundary_search import BoundarySearch
from torchbisect.bisect.search.evidence import (
    AskedBuild,
    Boundary,
    BoundaryKind,
    BuildAnswer,
    BuildStatus,
    SearchResult,
)
from torchbisect.bisect.search.find import Prefetcher, find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions
from torchbisect.bisect.sources.branch_cuts import NoDayRange, days_between_branch_cuts
from torchbisect.bisect.sources.listing import Listing
from torchbisect.containers.store.disk import format_bytes
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable, TorchbisectError
from torchbisect.core.footprint import footprint_of
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.flaky_search import MismatchRate, search_flaky
from torchbisect.pipeline.partial_wheel_midpoints import (
    PartialWheelContradicted,
    PartialWheelOracle,
    partial_wheels_usable,
)
from torchbisect.pipeline.search_scope import Scope, first_scope
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Question

_NIGHTLIES = "nightlies"
#: The most builds that are installed ahead of their question at once. An install keeps two cores busy, and every second
#: one ahead is in vain: on two cores they slow the build that is needed, and take its room in the cache.
MOST_PREFETCHES = max(0, (os.cpu_count() or 2) // 2 - 1)


@dataclass(frozen=True)
class Level:
    """The result of a search among the builds of one channel."""

    channel: Channel
    listing: Listing
    result: SearchResult[Build]

    def boundary(self, kind: BoundaryKind) -> Boundary[Build] | None:
        """Return the boundary of a kind, or ``None`` if there is none."""
        return self.result.regression if kind is BoundaryKind.REGRESSION else self.result.fix


class Bisection:
    """Searches the builds of a channel. As a context manager it ends the processes that it leaves open.

    Attributes:
        build_oracle: answers for each build, and holds the facts of those that were installed.
        flaky: not every run shows the mismatch, so that builds are asked by single runs.

    Args:
        failing: the build where the script is known to fail.
        component: the compiler stage that was localized.
        rate: the share of the failing build's runs that showed the mismatch.
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
        self._jobs = session.options.jobs or 1
        self._on_end: Callable[[Build], None] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Bisection:
        self._stack.enter_context(self._session.sources.cache.giving_back(self.build_oracle.end_idle))
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._session.background.cancel.set()
            self.build_oracle.abandon()
        self._session.background.settle()
        self.build_oracle.end_idle()
        self._stack.close()

    def prepare(self, question: Question) -> None:
        """Start the processes of the builds that will be asked first, or begin the install of the first.

        The failing build needs none: the journal has its runs. Nothing is started beside measured runs, which it would
        slow.

        Args:
            question: one like those that will be asked.
        """
        if self._session.options.measure is not None:
            return
        with suppress(TorchbisectError):  # the search meets it again
            search = self._first_search()
            for build in dict.fromkeys([*(one.item for one in search.next(self._jobs)), *search.likely()]):
                if build.name != self._failing.name and self._session.sources.maker(build).has(build):
                    self.build_oracle.prepare(build, question)
            self._begin_install(search)

    def begin_first_install(self) -> bool:
        """Install the release in the background that will be asked whatever the others answer.

        A nightly may need no install, where its Python alone tells. Return False if the builds can't be listed.
        """
        if self._session.options.measure is not None:
            return True
        with suppress(TorchbisectError):
            self._begin_install(self._first_search())
            return True
        return False

    def _first_search(self) -> BoundarySearch[Build]:
        scope = first_scope(self._session.options, self._session.sources, self._failing)
        return BoundarySearch(scope.listing.builds, self._search_options(scope))

    def _begin_install(self, search: BoundarySearch[Build]) -> None:
        background = self._session.background
        for build in (question.item for question in search.next()):
            maker = self._session.sources.maker(build)
            if build.channel is Channel.RELEASE and not maker.has(build) and self._has_room_for(build, 0):
                background.begin(("install", build), functools.partial(maker.prefetch, build, background.cancel))

    def search(self, question: Question, on_end: Callable[[Build], None] | None = None) -> Level:
        """Find where it broke and where it was fixed, in the coarsest channel that was asked for.

        Args:
            on_end: called with ends of boundaries as soon as they are known, perhaps from another thread: with a good
                end before it is asked again, and with the oldest build if it is bad.

        Raises:
            InputError: ``--good`` or ``--bad`` names no build of the channel, or they are in the wrong order.
            MachineError: the search could not go on.
        """
        scope = first_scope(self._session.options, self._session.sources, self._failing)
        self._on_end = on_end
        try:
            return Level(scope.channel, scope.listing, self._find(scope, question))
        finally:
            self._on_end = None

    def has_finer(self, level: Level, boundary: Boundary[Build]) -> bool:
        """Return True if a boundary lies between two releases, and nightlies may be searched."""
        return level.channel is Channel.RELEASE and not boundary.open and self._searches_nightlies

    def finer(self, boundary: Boundary[Build], question: Question) -> Level | str:
        """Search the nightlies for a boundary between two releases, or return the reason why that is not possible.

        Raises ``IndexUnreachable`` if the user asked for nightlies by name, and their index did not answer.
        """
        options = self._session.options
        assert boundary.before is not None
        assert boundary.after is not None
        try:
            listed = self._session.background.result(_NIGHTLIES, self._listed_nightlies)
            days = days_between_branch_cuts(boundary.before, boundary.after, listed)
            listing = self._session.sources.nightlies_between(days.first, days.last)
        except NoDayRange as reason:
            return str(reason)
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
        """Return the answer of a build, from the journal if it was asked before."""
        return self._session.background.result((build, question), lambda: self.build_oracle.ask(build, question))

    def begin(self, build: Build, question: Question) -> None:
        """Ask an installed build in the background, because ``ask`` will probably be called."""
        if self._session.sources.maker(build).has(build):
            self._session.background.begin((build, question), lambda: self.build_oracle.ask(build, question))

    def begin_listing(self) -> None:
        """List the nightlies in the background, because a boundary was found between which they may lie."""
        if self._searches_nightlies:
            self._session.background.begin(_NIGHTLIES, self._listed_nightlies)

    @property
    def _searches_nightlies(self) -> bool:
        channels = self._session.options.channels
        return not channels or "nightly" in channels

    def _listed_nightlies(self) -> Listing:
        return self._session.sources.listed_nightlies

    def remarks_on_wheels(self, level: Level, question: Question) -> Iterator[str]:
        """Yield a remark for each boundary with a wheel for the CPU on one side and one for CUDA on the other.

        Where the first is there for CUDA too, that one is asked, so that wheels of one kind are compared.
        """
        facts = self.build_oracle.facts
        for boundary in (level.result.regression, level.result.fix):
            sides = [build for build in (boundary.before, boundary.after) if build] if boundary else []
            cpu = [build for build in sides if build.name in facts and facts[build.name].cuda is None]
            cuda = [build for build in sides if build.name in facts and facts[build.name].cuda is not None]
            if not (cpu and cuda):
                continue
            said = f"torch {cuda[0]} was asked with a wheel for CUDA, because the indexes have none for the CPU"
            other = level.listing.cuda.get(cpu[0].version)
            if other is None:
                yield f"{said}, and torch {cpu[0]} with one for the CPU"
                continue
            first, second = self.ask(cpu[0], question).status, self.ask(other, question).status
            same = f"torch {cpu[0]} is {second} with a wheel for CUDA too"
            different = f"torch {cpu[0]} is {first} with a wheel for the CPU and {second} with one for CUDA"
            yield f"{said}; " + (same if first is second else f"{different}: the wheels may differ, not the releases")

    def _find(self, scope: Scope, question: Question) -> SearchResult[Build]:
        found, notice = self._search(scope, question), scope.listing.notice
        return replace(found, notices=(*found.notices, notice)) if notice else found

    def _search(self, scope: Scope, question: Question) -> SearchResult[Build]:
        if not self.flaky:
            found = self._search_reliable(scope, question)
            # With --repeat a build may be flaky although every run of the failing one showed the mismatch.
            self.flaky = any(tested.reason == "flaky" for tested in found.tested)
            if not self.flaky:
                return found
        self._session.display.result("the script is flaky: builds are asked by single runs until a boundary is likely")
        return search_flaky(self._session, self.build_oracle, scope, question, self._rate)

    def _search_reliable(self, scope: Scope, question: Question) -> SearchResult[Build]:
        """Search with partial wheels where that is possible, and with whole installs if these contradict them."""
        if partial_wheels_usable(self._session, scope.listing.builds, self._component):
            thin = PartialWheelOracle(self._session, self.build_oracle, scope.listing, question)
            try:
                return _with_notice(self._find_boundaries(scope, question, thin), thin)
            except PartialWheelContradicted as error:
                self._session.display.warn(f"{error} answers otherwise when installed whole: asking whole installs")
        return self._find_boundaries(scope, question)

    def _find_boundaries(
        self, scope: Scope, question: Question, thin: PartialWheelOracle | None = None
    ) -> SearchResult[Build]:
        """Search for a mismatch of every run; with ``thin`` only the two ends are installed whole."""
        sources, builds = self._session.sources, scope.listing.builds
        self._answered, self._total = 0, _estimate(len(builds), scope.kind)
        whole_ends = {builds[end] for end in (scope.bad, scope.good) if end is not None}

        def ask(build: Build) -> BuildAnswer:
            return self.build_oracle.ask(build, question) if thin is None or build in whole_ends else thin.ask(build)

        def again(build: Build) -> BuildAnswer:
            if thin is not None:
                return thin.ask_again(build)
            if self._on_end is not None:
                self._on_end(build)
            return self.build_oracle.ask(build, question, again=True)

        def fetch(build: Build, cancel: threading.Event) -> None:
            if sources.maker(build).has(build):
                self.build_oracle.prepare(build)
            else:
                sources.maker(build).prefetch(build, cancel)

        def show(tested: AskedBuild[Build]) -> None:
            self._show(tested)
            if self._on_end is not None and tested.item == builds[0] and tested.status is BuildStatus.BAD:
                self._on_end(tested.item)

        if thin is not None:
            # Before the others: partial wheels lie over a build that works.
            self.build_oracle.ask(builds[scope.bad], question)
        # A partial wheel needs no install, so none is prefetched; an install beside a measured run would slow that.
        quiet = thin is not None or self._session.options.measure is not None
        jobs = self._session.options.candidates if thin else self._jobs
        with Prefetcher(fetch, lambda build, running: not quiet and self._may_prefetch(build, running)) as prefetcher:
            return find_boundaries(
                builds,
                ask,
                self._search_options(scope, partial=thin is not None),
                known=thin.known if thin else lambda build: self.build_oracle.known(build, question),
                jobs=jobs,
                ask_again=again,
                prefetch=prefetcher,
                on_answer=show,
            )

    def _search_options(self, scope: Scope, partial: bool = False) -> SearchOptions[Build]:
        """Return the options of a search; one with partial wheels needs whole installs to lay them over."""
        sources = self._session.sources
        return SearchOptions(
            bad=scope.bad,
            good=scope.good,
            ends_first=partial,
            kind=scope.kind,
            cached=lambda build: sources.maker(build).has(build),
            rank=rank if scope.channel is Channel.NIGHTLY else None,
            recheck="both" if partial else "good",
        )

    def _may_prefetch(self, build: Build, running: int) -> bool:
        """Return True if there are cores and room to prefetch a build beside those in progress and those in use."""
        return self._session.sources.maker(build).has(build) or (
            running < MOST_PREFETCHES and self._has_room_for(build, running)
        )

    def _has_room_for(self, build: Build, running: int) -> bool:
        """Return True if a build fits into the cache beside ``running`` others and those in use."""
        size = footprint_of(build)
        in_use = 1 + self._jobs
        needed = (running + in_use + 1) * (size.installed + size.shared_installed)
        return self._session.sources.cache.could_keep(needed)

    def _show(self, tested: AskedBuild[Build]) -> None:
        self._answered += 1
        self._session.display.count(self._answered, max(self._total, self._answered + 1))
        text = f"torch {tested.item}: {tested.status}" + (f" ({tested.reason})" if tested.reason else "")
        left = max(0, self._total - self._answered)
        self._session.display.result(
            text + (" again" if tested.recheck else "") + (f"; about {left} more" if left else "")
        )
        if tested.detail:
            self._session.display.detail(tested.detail)


def boundary_builds(result: SearchResult[Build]) -> Sequence[Build]:
    """Return the builds on both sides of every boundary, each once."""
    found: dict[str, Build] = {}
    for boundary in (result.regression, result.fix):
        for build in (boundary.before, boundary.after) if boundary else ():
            if build is not None:
                found[build.name] = build
    return tuple(found.values())


def good_builds(result: SearchResult[Build]) -> tuple[Build, ...]:
    """Return the good build at each boundary: the last good one, and the first fixed one."""
    ends = (
        result.regression.before if result.regression is not None else None,
        result.fix.after if result.fix is not None else None,
    )
    return tuple(build for build in ends if build is not None)


def telling_builds(result: SearchResult[Build]) -> Sequence[Build]:
    """Return the builds that tell two histories apart: those at each boundary, and the untestable one beside it."""
    found = {build.name: build for build in boundary_builds(result)}
    for boundary in (result.regression, result.fix):
        if boundary is not None and boundary.between:
            # The untestable build beside the bad end, where the search had to stop.
            nearest = boundary.between[-1 if boundary.kind is BoundaryKind.REGRESSION else 0].item
            found.setdefault(nearest.name, nearest)
    return tuple(found.values())


def _with_notice(result: SearchResult[Build], thin: PartialWheelOracle) -> SearchResult[Build]:
    if not thin.asked:
        return result
    notice = (
        f"{len(thin.asked)} of the builds were asked by their Python alone ({format_bytes(thin.fetched)} fetched "
        "for them); both ends of each boundary were installed whole"
    )
    return replace(result, notices=(*result.notices, notice))


def rank(build: Build) -> int:
    """Return the day of a nightly as a number, so that every search of a range has the same midpoints."""
    return build.date.toordinal() if build.date else 0


def _estimate(count: int, kind: BoundaryKind) -> int:
    sides = 2 if kind is BoundaryKind.BOTH else 1
    return 1 + sides * (math.ceil(math.log2(max(2, count))) + 1)
