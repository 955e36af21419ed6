"""A script that does not do the same each time: single runs of builds, as many as it takes to be sure enough."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import TracebackType

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, SearchResult
from torchbisect.bisect.search.flaky import find_flaky_boundaries
from torchbisect.bisect.search.options import FlakySearchOptions
from torchbisect.core.build import Build
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.question import Question

#: A build that isn't installed yet costs as much as so many runs of one that is.
INSTALL = 20.0
#: So many builds' processes are kept between their runs; a torch that was imported takes half a gigabyte of memory.
_KEPT = 2


@dataclass(frozen=True)
class MismatchRate:
    """In how many runs of the failing build the mismatch was there."""

    shown: int
    asked: int

    @property
    def always(self) -> bool:
        """Whether it was there each time."""
        return self.shown == self.asked


class Runs:
    """Single runs of builds, one after the other; each build's process lasts until others are asked."""

    def __init__(self, session: Session, build_oracle: BuildOracle, question: Question) -> None:
        self._session, self._build_oracle, self._question = session, build_oracle, question
        self._count: Counter[Build] = Counter()
        self._open: dict[Build, Oracle] = {}

    def __enter__(self) -> Runs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        for build in list(self._open):
            self._close(build)

    def known(self, build: Build) -> list[BuildAnswer]:
        """What an earlier search was told of a build, run by run."""
        found: list[BuildAnswer] = []
        while (finding := self._build_oracle.known_run(build, self._question, len(found) + 1)) is not None:
            found.append(finding)
        return found

    def ask(self, build: Build) -> BuildAnswer:
        """What the next run of a build shows."""
        self._count[build] = max(self._count[build], len(self.known(build))) + 1
        return self._build_oracle.run(build, self._question, self._count[build], lambda: self._probe(build))

    def _probe(self, build: Build) -> Oracle:
        probe = self._open.pop(build, None)
        if probe is None:
            environment = self._session.channels.maker(build).environment(build)
            self._build_oracle.facts[build.name] = environment.facts
            probe = self._session.oracle_in(environment)
        self._open[build] = probe
        while len(self._open) > _KEPT:
            self._close(next(iter(self._open)))
        return probe

    def _close(self, build: Build) -> None:
        self._open.pop(build).close()
        self._session.channels.maker(build).release(build)


def search_flaky(
    session: Session,
    build_oracle: BuildOracle,
    builds: tuple[Build, ...],
    question: Question,
    rate: MismatchRate,
    *,
    bad: int,
    good: int | None,
    kind: BoundaryKind,
) -> SearchResult[Build]:
    """Search for the edges of a mismatch that shows only in some runs, each to the confidence that was asked for."""

    def cost(build: Build) -> float:
        return 1.0 if session.channels.maker(build).has(build) else INSTALL

    with Runs(session, build_oracle, question) as runs:
        return find_flaky_boundaries(
            builds,
            runs.ask,
            FlakySearchOptions(bad=bad, good=good, kind=kind, shown=rate.shown, runs=rate.asked, cost=cost),
            known=runs.known,
            on_answer=lambda tested: session.display.detail(f"torch {tested.item}: {tested.status}"),
        )
