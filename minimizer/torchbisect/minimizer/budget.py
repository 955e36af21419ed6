"""The budget of a reduction, and the figures that it reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Limits of a reduction: seconds of wall time and questions to the oracle; ``None`` is no limit."""

    seconds: float | None = None
    questions: int | None = None

    @classmethod
    def parsed(cls, text: str) -> Budget:
        """Read ``90s``, ``5m``, ``1h`` or ``200q`` (questions); raise ``ValueError`` on another form or amount."""
        found = _BUDGET.match(text.strip())
        if found is None or not 0 < float(found.group(1)) <= _MOST:
            raise ValueError(text)
        amount, unit = found.groups()
        if unit == "q":
            return cls(questions=int(amount))
        return cls(seconds=float(amount) * {"s": 1, "m": 60, "h": 3600}[unit])

    def __str__(self) -> str:
        """Return the budget as a user types it."""
        return f"{self.questions}q" if self.seconds is None else f"{self.seconds:.15g}s"

    def left(self, asked: int, seconds: float) -> Budget:
        """Return the budget that is left after so many questions and seconds."""
        return Budget(
            None if self.seconds is None else max(0.0, self.seconds - seconds),
            None if self.questions is None else max(0, self.questions - asked),
        )

    def allows(self, asked: int, seconds: float) -> bool:
        """Tell whether one more question may be asked after so many questions and seconds."""
        if self.questions is not None and asked >= self.questions:
            return False
        return self.seconds is None or seconds < self.seconds


_MOST = 1e9
_BUDGET = re.compile(r"([0-9]+(?:\.[0-9]+)?(?=[smh]\Z)|[0-9]+(?=q\Z))([smhq])\Z")


class BudgetExhausted(Exception):
    """No further question may be asked."""


class PatienceEnded(BudgetExhausted):
    """The last questions removed next to nothing."""


class PassSuspended(Exception):
    """Too many questions of the running pass were answered no in a row; another pass may do better."""


@dataclass(frozen=True)
class Patience:
    """The end of a reduction that no longer pays: after many questions, the last of which removed next to nothing.

    Attributes:
        questions: never end before so many questions about a script of ``nodes`` nodes; a larger one gets more.
        window, share: the last questions, and the part of the script that they have to remove.
        readable: the size in nodes of a script that a person reads at a glance; one that is larger gets twice as many
            questions, because between two rewrites that pay there may be many that do not.
    """

    questions: int = 150
    nodes: int = 2000
    window: int = 30
    share: float = 0.05
    readable: int = 100

    def has_ended(self, asked: int, sizes: Sequence[tuple[int, int]]) -> bool:
        """Tell whether to stop; ``sizes`` has the number of questions and of nodes at each success, the first at 0."""
        if not sizes:
            return False
        least = self.questions * max(1.0, sizes[0][1] / self.nodes)
        if asked < (2 * least if sizes[-1][1] > self.readable else least):
            return False
        before = next(nodes for number, nodes in reversed(sizes) if number <= max(0, asked - self.window))
        return sizes[-1][1] > (1 - self.share) * before


@dataclass(frozen=True)
class Progress:
    """The state of a reduction, for display; ``bytes`` and ``nodes`` are the size of the best script so far."""

    stage: str
    asked: int
    bytes: int
    nodes: int
    seconds: float


@dataclass
class Statistics:
    """The figures of one pass: questions, those answered yes, bytes that they removed, and seconds of wall time."""

    asked: int = 0
    accepted: int = 0
    bytes_won: int = 0
    seconds: float = 0.0

    @property
    def mostly_failed(self) -> bool:
        """Tell whether so few of its questions were answered yes that several edits in one rarely pay."""
        return self.asked >= 4 and self.accepted * 3 < self.asked
