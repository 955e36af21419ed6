"""Check that the answers read good, bad, good with at most one change each way, which binary search assumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import BuildStatus


@dataclass(frozen=True)
class AnswerRun:
    """Neighboring testable builds with one answer; ``first`` and ``last`` are their outermost positions."""

    status: BuildStatus
    first: int
    last: int

    def describe(self, builds: Sequence[object]) -> str:
        """Return the run as text, such as ``bad 2.4.1 to 2.6.0``."""
        span = f" to {builds[self.last]}" if self.last > self.first else ""
        return f"{self.status} {builds[self.first]}{span}"


def answer_runs(answers: Mapping[int, BuildStatus]) -> list[AnswerRun]:
    """Join neighbors with the same answer, oldest first; untestable builds are left out."""
    runs: list[AnswerRun] = []
    for position, status in sorted(answers.items()):
        if not status.testable:
            continue
        if runs and runs[-1].status is status:
            runs[-1] = AnswerRun(status, runs[-1].first, position)
        else:
            runs.append(AnswerRun(status, position, position))
    return runs


def is_monotone(runs: Sequence[AnswerRun]) -> bool:
    """Return true if the tested builds show the bug in one run at most."""
    return sum(run.status is BuildStatus.BAD for run in runs) <= 1
