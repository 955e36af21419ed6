"""Midpoints asked thin: a nightly's Python over an installed neighbour, so that 9 MB are fetched and not 900."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.partial_wheel import partial_wheel_environment
from torchbisect.bisect.sources.suspects import stage_paths
from torchbisect.containers.environment import Environment
from torchbisect.core.build import Build, Channel
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.session import Session
from torchbisect.probe.question import Question

_KIND = "thin"


class PartialWheelContradicted(Exception):
    """A build said otherwise when it was installed whole: what its Python alone said counts no more."""


def partial_wheels_usable(session: Session, builds: Sequence[Build], component: str | None) -> bool:
    """Whether the stage at fault is written in Python, and the builds are near enough to each other to share binaries.

    Releases lie months apart and are asked whole; so are containers, over which nothing is laid.
    """
    nightlies = all(build.channel is Channel.NIGHTLY for build in builds)
    return nightlies and session.options.sandbox == "venv" and bool(stage_paths(component))


class PartialWheelOracle:
    """Asks builds by their Python alone where that can be done, and whole where it can't.

    Attributes:
        fetched: the bytes that came over the network for that.
    """

    def __init__(self, session: Session, build_oracle: BuildOracle, listing: Listing, question: Question) -> None:
        self._session, self._build_oracle, self._question = session, build_oracle, question
        self._builds = listing.builds
        self._urls = {version: wheel.url for version, wheel in listing.wheels.items()}
        self._said: dict[Build, BuildAnswer] = {}
        self.fetched = 0

    @property
    def asked(self) -> tuple[Build, ...]:
        """The builds of which only the Python was asked."""
        return tuple(self._said)

    def known(self, build: Build) -> BuildAnswer | None:
        """What an earlier search was told of a build, whole or by its Python alone."""
        whole = self._build_oracle.known(build, self._question)
        thin = self._build_oracle.known_in(_KIND, build.requirement, self._question)
        if thin is not None and thin.status.testable:
            self._said[build] = thin
            return thin
        return whole

    def ask(self, build: Build) -> BuildAnswer:
        """What a build shows. One whose Python doesn't fit a neighbour's binaries is installed, and lends its own."""
        url = build.wheel or self._urls.get(build.version)
        base = self._neighbour(build)
        if url is None or base is None or self._session.channels.maker(build).has(build):
            return self._build_oracle.ask(build, self._question)
        finding = self._build_oracle.ask_in(
            _KIND, build.requirement, lambda: self._over(build, url, base), self._question
        )
        if finding.status is BuildStatus.UNTESTABLE:
            return self._build_oracle.ask(build, self._question)
        self._said[build] = finding
        return finding

    def ask_again(self, build: Build) -> BuildAnswer:
        """What an end shows, installed whole.

        Raises:
            Contradicted: its Python alone said otherwise.
        """
        finding = self._build_oracle.ask(build, self._question, again=True)
        if build in self._said and finding.status is not self._said[build].status:
            raise PartialWheelContradicted(f"torch {build}")
        return finding

    def _neighbour(self, build: Build) -> Build | None:
        """The nearest build that works here, installed whole, for the same Python and of the same variant."""
        place, maker = self._builds.index(build), self._session.channels.maker(build)
        near = sorted(self._builds, key=lambda other: abs(self._builds.index(other) - place))
        return next(
            (other for other in near if self._session.channels.maker(other) is maker and self._works(other)), None
        )

    def _works(self, build: Build) -> bool:
        finding = self._build_oracle.known(build, self._question)
        return finding is not None and finding.status.testable and self._session.channels.maker(build).has(build)

    @contextmanager
    def _over(self, build: Build, url: str, base: Build) -> Iterator[Environment]:
        """The Python of a build over the binaries of another, for as long as it is asked."""
        channels = self._session.channels
        lender = channels.maker(base).host_venv(base)
        try:
            notify = self._session.display.status
            with partial_wheel_environment(channels.cache, build, url, lender, notify=notify) as (environment, fetched):
                self.fetched += fetched
                yield environment
        finally:
            channels.maker(base).release(base)
