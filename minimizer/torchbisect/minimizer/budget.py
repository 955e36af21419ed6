"""What was asked and what was answered: the budget, the memory, the figures; and what is never asked at all."""

from __future__ import annotations

import ast
import re
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.candidate_filter import faults, members
from torchbisect.minimizer.syntax.scope import unbound
from torchbisect.minimizer.syntax.tree import nodes


@dataclass(frozen=True)
class Budget:
    """How much may be spent: seconds of wall time and questions; ``None`` is no limit."""

    seconds: float | None = None
    questions: int | None = None

    @classmethod
    def parsed(cls, text: str) -> Budget:
        """``90s``, ``5m``, ``1h``: wall time; ``200q``: questions. Raises ``ValueError`` for anything else."""
        found = _BUDGET.match(text.strip())
        if found is None or not float(found.group(1)):
            raise ValueError(text)
        amount, unit = found.groups()
        if unit == "q":
            return cls(questions=int(amount))
        return cls(seconds=float(amount) * {"s": 1, "m": 60, "h": 3600}[unit])

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.questions}q" if self.seconds is None else f"{self.seconds:.15g}s"


_BUDGET = re.compile(r"([0-9]+(?:\.[0-9]+)?(?=[smh]\Z)|[0-9]+(?=q\Z))([smhq])\Z")


@dataclass(frozen=True)
class Progress:
    """What a user wants to see while it goes on.

    Attributes:
        stage: the name of the pass at work.
        asked: questions so far.
        bytes, nodes: size of the best so far.
        seconds: since the start.
    """

    stage: str
    asked: int
    bytes: int
    nodes: int
    seconds: float


@dataclass
class Statistics:
    """What one pass did: questions, how many were answered yes, the bytes they won, wall time in seconds."""

    asked: int = 0
    accepted: int = 0
    bytes_won: int = 0
    seconds: float = 0.0


class BudgetSpent(Exception):
    """No more questions may be asked."""


@dataclass
class Ledger:
    """All that was asked in a reduction, shared by the search and the ventures that branch off it.

    Attributes:
        ask: the question.
        budget: what may be spent.
        expect: hears, before each question, which ones come next if the answer is no; nothing is lost if it does
            nothing, and the texts are only made as it takes them.
        answers: every text asked about, and whether it showed the mismatch.
        turn: the texts that this turn of the reduction wanted to know of, remembered ones included.
        most_turn: how many of them there may be; a venture sets it.
        statistics: by pass.
        stage: the name of the pass at work.
        asked: how many questions were asked.
        most_nodes: the size of the user's own script, which no result exceeds.
        known_unbound: names that the user's own script could not bind either; they are let through.
        members: what the user's own classes define; reading one that is gone can't work.
        known_faults: how often the user's own script has each fault.
    """

    ask: Callable[[str], Verdict]
    budget: Budget
    on_progress: Callable[[Progress], None]
    expect: Callable[[Iterable[str]], None] = lambda texts: None
    answers: dict[str, bool] = field(default_factory=dict)
    turn: set[str] = field(default_factory=set)
    most_turn: int | None = None
    statistics: dict[str, Statistics] = field(default_factory=dict)
    stage: str = ""
    asked: int = 0
    most_nodes: int = 10**9
    known_unbound: frozenset[str] = frozenset()
    known_faults: dict[str, int] = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    started: float = field(default_factory=time.monotonic)
    _sound: dict[str, bool] = field(default_factory=dict)

    def begin(self, tree: ast.Module) -> None:
        """Start a turn from this script, as if nothing had been asked; what is remembered only saves questions."""
        self.known_unbound = unbound(tree)
        self.most_nodes = nodes(tree)
        self.members = members(tree)
        self.known_faults = dict(faults(tree, self.members))
        self.turn.clear()
        self._sound.clear()

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.monotonic() - self.started

    def answer(self, text: str, then: Iterable[str] = ()) -> bool:
        """Whether this text shows the mismatch, from memory if it was asked before.

        Args:
            text: asked about.
            then: what will be asked about if it doesn't.

        Raises:
            BudgetSpent: it would be one question too many.
        """
        if text not in self.turn:
            if self.most_turn is not None and len(self.turn) >= self.most_turn:
                raise BudgetSpent
            self.turn.add(text)
        if text not in self.answers:
            limit = self.budget
            if limit.questions is not None and self.asked >= limit.questions:
                raise BudgetSpent
            if limit.seconds is not None and self.seconds >= limit.seconds:
                raise BudgetSpent
            statistics = self.statistics.setdefault(self.stage, Statistics())
            before = time.monotonic()
            self.asked += 1
            statistics.asked += 1
            self.expect(f"{other}\n" for other in then if other != text and other not in self.answers)
            self.answers[text] = self.ask(text + "\n").same
            statistics.seconds += time.monotonic() - before
        return self.answers[text]

    def sound(self, tree: ast.Module, text: str) -> bool:
        """Whether a candidate is worth a question: it parses, binds its names and is about something."""
        if text not in self._sound:
            self._sound[text] = self._worth(tree, text)
        return self._sound[text]

    def _worth(self, tree: ast.Module, text: str) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(text, "candidate", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return False
        if not unbound(tree) <= self.known_unbound:
            return False
        found = faults(tree, self.members)
        return all(count <= self.known_faults.get(fault, 0) for fault, count in found.items())
