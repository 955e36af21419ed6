"""The bisect stage: asks builds through the probe, from releases to nightlies, and says what goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from torchbisect.bisect.channels.listing import Listing
from torchbisect.bisect.channels.minors import between_cuts
from torchbisect.bisect.judging import finding_of
from torchbisect.bisect.search import Edge, Finding, Findings, Status, Tested, Which, find
from torchbisect.bisect.selection import check_order
from torchbisect.cli.tools import Tools
from torchbisect.containers.builds import Build, Channel
from torchbisect.containers.environments import Facts
from torchbisect.containers.errors import IndexUnreachable, InputError, InstallFailed
from torchbisect.probe.client import AgentFailed
from torchbisect.probe.matching import Strictness
from torchbisect.probe.repro import Repro, Settings, fingerprint
from torchbisect.probe.signature import Signature
from torchbisect.probe.version import __version__


@dataclass(frozen=True)
class Target:
    """What builds are asked about.

    Attributes:
        repro: the script.
        settings: what it is compiled with.
        signature: the mismatch that counts.
    """

    repro: Repro
    settings: Settings
    signature: Signature


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
    """Asks builds about one target; may be asked from several threads.

    Attributes:
        facts: what was read back from each build that was installed, by its name.

    Args:
        tools: what the run works with.
        failing: the build where the target is known to fail.
    """

    def __init__(self, tools: Tools, failing: Build) -> None:
        self._tools = tools
        self._failing = failing
        self._answered = self._total = 0
        self.facts: dict[str, Facts] = {}

    def search(self, target: Target) -> Level:
        """Find where it broke and where it was mended, in the coarsest channel that was asked for.

        Raises:
            InputError: ``--good`` and ``--bad`` can't be what they are said to be.
            MachineError: the search could not go on.
        """
        channels, options = self._tools.channels, self._tools.options
        if options.channels and "release" not in options.channels:
            return self._search(Channel.NIGHTLY, self._nightlies(), target)
        return self._search(Channel.RELEASE, channels.releases, target)

    def has_finer(self, level: Level, edge: Edge[Build]) -> bool:
        """Whether an edge is one between two releases, and nightlies may be looked at."""
        channels = self._tools.options.channels
        return level.channel is Channel.RELEASE and not edge.open and (not channels or "nightly" in channels)

    def finer(self, edge: Edge[Build], target: Target) -> Level | str:
        """Look for an edge between two releases among the nightlies, or say in a line why that can't be.

        Raises:
            IndexUnreachable: nightlies were asked for by name and their index did not answer.
        """
        options = self._tools.options
        assert edge.before is not None
        assert edge.after is not None
        try:
            days = between_cuts(edge.before, edge.after, self._tools.channels.listed_nightlies)
            if isinstance(days, str):
                return days
            listing = self._tools.channels.nightlies_between(days.first, days.last)
        except IndexUnreachable as error:
            if "nightly" in options.channels:
                raise
            return f"nightlies could not be searched: {error}"
        if len(listing.builds) < 2:
            return f"no nightlies to search from {days.words}"
        self._tools.display.result(f"{len(listing.builds)} nightlies of {days.words}")
        first, last = 0, len(listing.builds) - 1
        good, bad = (first, last) if edge.which is Which.REGRESSION else (last, first)
        return Level(Channel.NIGHTLY, listing, self._find(listing, target, bad, good, edge.which))

    def ask(self, build: Build, target: Target, *, again: bool = False) -> Finding:
        """What this build shows; from the journal if it was asked before.

        Args:
            build: the build.
            target: what it is asked about.
            again: a question of its own, in an environment started anew.
        """
        known = self.known(build, target, again=again)
        if known is not None:
            return known
        self._tools.display.status(f"torch {build}" + (" once more" if again else ""))
        finding = self._ask(build, target)
        facts = self.facts.get(build.name)
        kept = {**asdict(finding), "status": finding.status.value, "facts": facts and asdict(facts)}
        self._tools.journal.put(self._key(build, target, again), kept)
        return finding

    def known(self, build: Build, target: Target, *, again: bool = False) -> Finding | None:
        """What the journal says of a question; ``None`` if it was not asked before."""
        kept = self._tools.journal.get(self._key(build, target, again))
        if kept is None:
            return None
        if kept["facts"]:
            self.facts[build.name] = Facts(**kept["facts"])
        return Finding(Status(kept["status"]), kept["reason"], kept["detail"], kept["seconds"])

    def _key(self, build: Build, target: Target, again: bool) -> str:
        tools = self._tools
        return fingerprint(
            "build", __version__, build.requirement, tools.interpreter.identity, tools.options.packages,
            target.repro.to_json(), target.settings.to_json(), target.signature.to_json(), tools.options.repeat, again,
        )  # fmt: skip

    def _search(self, channel: Channel, listing: Listing, target: Target) -> Level:
        options = self._tools.options
        builds = listing.builds
        bad = self._position(builds, options.bad) if options.bad else self._position_of(builds, self._failing)
        good = self._position(builds, options.good) if options.good else None
        which = Which(options.find)
        if good is not None:
            check_order(builds[good], builds[bad], which)
        return Level(channel, listing, self._find(listing, target, bad, good, which))

    def _find(self, listing: Listing, target: Target, bad: int, good: int | None, which: Which) -> Findings[Build]:
        self._answered, self._total = 0, _estimate(len(listing.builds), which)
        return find(
            listing.builds,
            lambda build: self.ask(build, target),
            bad=bad,
            good=good,
            find=which,
            cached=lambda build: self._tools.channels.maker(build).has(build),
            rank=_rank if listing.builds[0].channel is Channel.NIGHTLY else None,
            known=lambda build: self.known(build, target),
            jobs=self._tools.options.jobs,
            ask_again=lambda build: self.ask(build, target, again=True),
            on_answer=self._say,
        )

    def _nightlies(self) -> Listing:
        """The nightlies of the index's page, and those out to the ends that were typed."""
        channels, options = self._tools.channels, self._tools.options
        listed = channels.listed_nightlies
        ends = [self._tools.build(text) for text in (options.good, options.bad, options.torch) if text]
        days = [build.date for build in (*ends, *listed.builds) if build.date is not None]
        typed = [build.date for build in ends if build.date is not None]
        if not days:
            raise InputError(f"there are no nightlies ({channels.variant}) for this Python: name another --variant")
        page = {build.date for build in listed.builds}
        if all(day in page for day in typed):
            return listed
        return channels.nightlies_between(min(days), max(days))

    def _ask(self, build: Build, target: Target) -> Finding:
        began = time.monotonic()
        try:
            with self._tools.probe(build) as probe:
                self.facts[build.name] = probe.environment.facts
                verdict = probe.ask(target.repro, target.signature, target.settings, Strictness.TOLERANT)
                return replace(finding_of(verdict), seconds=time.monotonic() - began)
        except InstallFailed as error:
            return Finding(Status.UNTESTABLE, error.reason, str(error), time.monotonic() - began)
        except AgentFailed as error:
            return Finding(Status.UNTESTABLE, "broken-environment", str(error), time.monotonic() - began)

    def _position(self, builds: Sequence[Build], text: str) -> int:
        return self._position_of(builds, self._tools.build(text))

    def _position_of(self, builds: Sequence[Build], build: Build) -> int:
        """Where a build stands in a channel; an installed one at the build it was made from, or the one before."""
        for position, other in enumerate(builds):
            if other.name == build.name:
                return position
        if build.channel is not Channel.INSTALLED or not builds:
            raise InputError(f"torch {build} isn't among the builds that can be asked: see torchbisect builds")
        older = [position for position, other in enumerate(builds) if other.minor <= build.minor]
        return older[-1] if older else 0

    def _say(self, tested: Tested[Build]) -> None:
        self._answered += 1
        text = f"torch {tested.item}: {tested.status}" + (f" ({tested.reason})" if tested.reason else "")
        left = max(0, self._total - self._answered)
        self._tools.display.result(text + (" again" if tested.again else "") + (f"; about {left} more" if left else ""))
        if tested.detail:
            self._tools.display.detail(tested.detail)


def edge_builds(findings: Findings[Build]) -> Sequence[Build]:
    """The builds on both sides of every edge that was found, without repeats."""
    found: dict[str, Build] = {}
    for edge in (findings.regression, findings.fix):
        for build in (edge.before, edge.after) if edge else ():
            if build is not None:
                found[build.name] = build
    return tuple(found.values())


def _rank(build: Build) -> int:
    """A nightly's day: midpoints then are the same few days in every search of a range."""
    return build.date.toordinal() if build.date else 0


def _estimate(count: int, which: Which) -> int:
    sides = 2 if which is Which.BOTH else 1
    return 1 + sides * (math.ceil(math.log2(max(2, count))) + 1)
