"""Whether the answers that were seen read good, bad, good with one change each way, as halving takes for granted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import Status


@dataclass(frozen=True)
class Run:
    """Tested builds with one answer, with no other answer seen between them: ``first`` and ``last`` are positions."""

    status: Status
    first: int
    last: int

    def words(self, items: Sequence[object]) -> str:
        """``bad 2.4.1 to 2.6.0``."""
        span = f" to {items[self.last]}" if self.last > self.first else ""
        return f"{self.status} {items[self.first]}{span}"


def runs_of(answers: Mapping[int, Status]) -> list[Run]:
    """The good and bad answers, oldest first, equal neighbours joined; untestable builds tell nothing."""
    runs: list[Run] = []
    for position, status in sorted(answers.items()):
        if not status.testable:
            continue
        if runs and runs[-1].status is status:
            runs[-1] = Run(status, runs[-1].first, position)
        else:
            runs.append(Run(status, position, position))
    return runs


def is_monotone(runs: Sequence[Run]) -> bool:
    """Whether the bug came at most once and went at most once, as far as was seen."""
    bad = [index for index, run in enumerate(runs) if run.status is Status.BAD]
    return len(bad) <= 1
