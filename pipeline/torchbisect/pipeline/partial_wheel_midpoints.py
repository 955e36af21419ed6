"""Midpoints asked by partial wheels: a nightly's Python files over the installation of a neighboring nightly.

This fetches 9 MB for a midpoint instead of 900 MB.
"""

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
from torchbisect.probe.oracle import Question

#: The kind of these environments in the journal's keys.
_KIND = "thin"


class PartialWheelContradicted(Exception):
    """A whole install answered differently from the partial wheel, so no partial wheel's answer counts any more."""


def partial_wheels_usable(session: Session, builds: Sequence[Build], component: str | None) -> bool:
    """Return true if the stage at fault is written in Python and the builds are close enough to share binaries.

    Releases lie months apart, so they are always installed whole; so are builds in containers, which can't be copied.
    """
    nightlies = all(build.channel is Channel.NIGHTLY for build in builds)
    return nightlies and session.options.sandbox == "venv" and bool(stage_paths(component))


class PartialWheelOracle:
    """Asks builds by partial wheels where possible, else by whole installs.

    Attributes:
        fetched: the number of bytes fetched for partial wheels.
    """

    def __init__(self, session: Session, build_oracle: BuildOracle, listing: Listing, question: Question) -> None:
        self._session, self._build_oracle, self._question = session, build_oracle, question
        self._builds = listing.builds
        self._urls = {version: wheel.url for version, wheel in listing.wheels.items()}
        self._answers: dict[Build, BuildAnswer] = {}
        self.fetched = 0

    @property
    def asked(self) -> tuple[Build, ...]:
        """The builds that were asked by a partial wheel."""
        return tuple(self._answers)

    def known(self, build: Build) -> BuildAnswer | None:
        """Return the journal's answer, or ``None``; that of a partial wheel goes before that of a whole install."""
        whole = self._build_oracle.known(build, self._question)
        partial = self._build_oracle.known_environment(_KIND, build.requirement, self._question)
        if partial is not None and partial.status.testable:
            self._answers[build] = partial
            return partial
        return whole

    def ask(self, build: Build) -> BuildAnswer:
        """Ask a build by its partial wheel; by a whole install if its Python does not run on a neighbor's binaries."""
        url = build.wheel or self._urls.get(build.version)
        base = self._neighbor(build)
        if url is None or base is None or self._session.sources.maker(build).has(build):
            return self._build_oracle.ask(build, self._question)
        answer = self._build_oracle.ask_environment(
            _KIND, build.requirement, lambda: self._environment(build, url, base), self._question
        )
        if answer.status is BuildStatus.UNTESTABLE:
            return self._build_oracle.ask(build, self._question)
        self._answers[build] = answer
        return answer

    def ask_again(self, build: Build) -> BuildAnswer:
        """Ask a boundary's end by a whole install. Raises ``PartialWheelContradicted`` if the two differ."""
        answer = self._build_oracle.ask(build, self._question, again=True)
        if build in self._answers and answer.status is not self._answers[build].status:
            raise PartialWheelContradicted(f"torch {build}")
        return answer

    def _neighbor(self, build: Build) -> Build | None:
        """Return the nearest build that is installed whole and testable, with the same Python and variant."""
        position, maker = self._builds.index(build), self._session.sources.maker(build)
        near = sorted(self._builds, key=lambda other: abs(self._builds.index(other) - position))
        return next(
            (other for other in near if self._session.sources.maker(other) is maker and self._works(other)), None
        )

    def _works(self, build: Build) -> bool:
        answer = self._build_oracle.known(build, self._question)
        return answer is not None and answer.status.testable and self._session.sources.maker(build).has(build)

    @contextmanager
    def _environment(self, build: Build, url: str, base: Build) -> Iterator[Environment]:
        """Give an environment with the Python of ``build`` over the binaries of ``base``."""
        sources = self._session.sources
        lender = sources.maker(base).host_venv(base)
        try:
            notify = self._session.display.status
            with partial_wheel_environment(sources.cache, build, url, lender, notify=notify) as (environment, fetched):
                self.fetched += fetched
                yield environment
        finally:
            sources.maker(base).release(base)
