"""Search for a flaky script: run builds as often as the confidence needs, by ``bisect.search.flaky``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import TracebackType

from torchbisect.bisect.search.evidence import BuildAnswer, SearchResult
from torchbisect.bisect.search.flaky import find_flaky_boundaries
from torchbisect.bisect.search.search_options import FlakySearchOptions
from torchbisect.core.build import Build
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.search_scope import Scope
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Oracle, Question

#: The cost of a build that is not installed yet, in runs of an installed one.
INSTALL_COST = 20.0
#: The number of builds whose processes stay open between their runs. An imported torch takes half a gigabyte of memory.
_OPEN_BUILDS = 2


@dataclass(frozen=True)
class MismatchRate:
    """The rate of the mismatch in the failing build: ``shown`` of ``asked`` runs showed it."""

    shown: int
    asked: int

    @property
    def always(self) -> bool:
        """True if every run showed it."""
        return self.shown == self.asked


class SingleRuns:
    """Runs builds once at a time; the processes of the builds asked last stay open."""

    def __init__(self, session: Session, build_oracle: BuildOracle, question: Question) -> None:
        self._session, self._build_oracle, self._question = session, build_oracle, question
        self._count: Counter[Build] = Counter()
        self._open: dict[Build, Oracle] = {}

    def __enter__(self) -> SingleRuns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        for build in list(self._open):
            self._close(build)

    def known(self, build: Build) -> list[BuildAnswer]:
        """Return the answers of a build's runs in earlier searches."""
        found: list[BuildAnswer] = []
        while (answer := self._build_oracle.known_run(build, self._question, len(found) + 1)) is not None:
            found.append(answer)
        return found

    def ask(self, build: Build) -> BuildAnswer:
        """Run a build once more."""
        self._count[build] = max(self._count[build], len(self.known(build))) + 1
        return self._build_oracle.ask_run(build, self._question, self._count[build], lambda: self._oracle(build))

    def _oracle(self, build: Build) -> Oracle:
        oracle = self._open.pop(build, None)
        if oracle is None:
            environment = self._session.sources.maker(build).environment(build)
            self._build_oracle.facts[build.name] = environment.facts
            oracle = self._session.oracle_in(environment)
        self._open[build] = oracle
        while len(self._open) > _OPEN_BUILDS:
            self._close(next(iter(self._open)))
        return oracle

    def _close(self, build: Build) -> None:
        self._open.pop(build).close()
        self._session.sources.maker(build).release(build)


def search_flaky(
    session: Session, build_oracle: BuildOracle, scope: Scope, question: Question, rate: MismatchRate
) -> SearchResult[Build]:
    """Find the boundaries of a mismatch that shows only in some runs; ``rate`` is that of the failing build."""

    def cost(build: Build) -> float:
        return 1.0 if session.sources.maker(build).has(build) else INSTALL_COST

    options = FlakySearchOptions(
        bad=scope.bad, good=scope.good, kind=scope.kind, shown=rate.shown, runs=rate.asked, cost=cost
    )
    with SingleRuns(session, build_oracle, question) as runs:
        return find_flaky_boundaries(
            scope.listing.builds,
            runs.ask,
            options,
            known=runs.known,
            on_answer=lambda asked: session.display.detail(f"torch {asked.item}: {asked.status}"),
        )
