"""Search for a flaky script: run builds as often as the confidence needs, by ``bisect.search.flaky``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import BuildAnswer, SearchResult
from torchbisect.bisect.search.flaky import find_flaky_boundaries
from torchbisect.bisect.search.search_options import FlakySearchOptions
from torchbisect.core.build import Build
from torchbisect.pipeline.build_oracle import BuildOracle
from torchbisect.pipeline.search_scope import Scope
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Question

#: The cost of a build that is not installed yet, in runs of an installed one.
INSTALL_COST = 20.0


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
    """Runs builds once at a time."""

    def __init__(self, build_oracle: BuildOracle, question: Question) -> None:
        self._build_oracle, self._question = build_oracle, question
        self._count: Counter[Build] = Counter()

    def known(self, build: Build) -> list[BuildAnswer]:
        """Return the answers of a build's runs in earlier searches."""
        found: list[BuildAnswer] = []
        while (answer := self._build_oracle.known_run(build, self._question, len(found) + 1)) is not None:
            found.append(answer)
        return found

    def ask(self, build: Build) -> BuildAnswer:
        """Run a build once more."""
        self._count[build] = max(self._count[build], len(self.known(build))) + 1
        return self._build_oracle.ask_run(build, self._question, self._count[build])


def search_flaky(
    session: Session, build_oracle: BuildOracle, scope: Scope, question: Question, rate: MismatchRate
) -> SearchResult[Build]:
    """Find the boundaries of a mismatch that shows only in some runs; ``rate`` is that of the failing build."""

    def cost(build: Build) -> float:
        return 1.0 if session.sources.maker(build).has(build) else INSTALL_COST

    options = FlakySearchOptions(
        bad=scope.bad, good=scope.good, kind=scope.kind, shown=rate.shown, runs=rate.asked, cost=cost
    )
    runs = SingleRuns(build_oracle, question)
    return find_flaky_boundaries(
        scope.listing.builds,
        runs.ask,
        options,
        known=runs.known,
        on_answer=lambda asked: session.display.detail(f"torch {asked.item}: {asked.status}"),
    )
