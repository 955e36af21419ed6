"""The interestingness test: a cached question to the oracle, within a budget and behind the candidate filter."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import (
    Budget,
    BudgetExhausted,
    PassSuspended,
    Patience,
    PatienceEnded,
    Progress,
    Statistics,
)
from torchbisect.minimizer.candidate_filter import CandidateFilter
from torchbisect.minimizer.syntax.canonical_names import canonical_text
from torchbisect.minimizer.syntax.tree import count_nodes

Ask = Callable[[str], Verdict]


@dataclass
class InterestingnessTest:
    """The test that a candidate must pass, with everything that was asked in a reduction.

    It is shared by the search and by the searches that branch off it.

    Attributes:
        expect: receives, before each question, the texts that come next if the answer is no. The texts are computed as
            they are read, and the result does not depend on them.
        answers: whether each text that was asked about is interesting.
        requested: the texts that the current round wanted to know of, cached ones included.
        request_limit: the maximum size of ``requested``; set while a search branches off.
        stage: the running pass.
        failures: the questions of the running pass that were answered no since its last success.
        most_failures: the number of failures after which the pass is suspended; ``None`` for never.
        patience: when to end a reduction that no longer pays; ``None`` for never.
        sizes: the number of questions and of nodes at the start and at each success.
        place: where the mismatch was seen in the last text that showed it, if that is known.
        most_nodes: size of the script that the current round started from; no result is larger.
        accepts: tells whether a text may be asked about.
    """

    ask: Callable[[str], Verdict]
    budget: Budget
    on_progress: Callable[[Progress], None]
    expect: Callable[[Iterable[str]], None] = lambda texts: None
    answers: dict[str, bool] = field(default_factory=dict)
    requested: set[str] = field(default_factory=set)
    request_limit: int | None = None
    statistics: dict[str, Statistics] = field(default_factory=dict)
    stage: str = ""
    failures: int = 0
    most_failures: int | None = None
    asked: int = 0
    place: str = ""
    most_nodes: int = 10**9
    filter: CandidateFilter = field(default_factory=CandidateFilter)
    patience: Patience | None = None
    sizes: list[tuple[int, int]] = field(default_factory=list)
    accepts: Callable[[str], bool] = lambda text: True
    started: float = field(default_factory=time.monotonic)
    _accepted: dict[str, bool] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def begin_round(self, tree: ast.Module) -> None:
        """Start a round from this script as if nothing had been asked; cached answers only save questions."""
        self.filter = CandidateFilter.of(tree)
        self.most_nodes = count_nodes(tree)
        self.requested.clear()
        self._accepted.clear()

    def begin_pass(self, stage: str, most_failures: int | None = None) -> None:
        """Start a pass, which is suspended after so many failures in a row."""
        self.stage, self.failures, self.most_failures = stage, 0, most_failures

    @property
    def seconds(self) -> float:
        """Wall time since the start of the reduction."""
        return time.monotonic() - self.started

    @property
    def current(self) -> Statistics:
        """The statistics of the running pass."""
        return self.statistics.setdefault(self.stage, Statistics())

    def is_interesting(self, text: str, following: Iterable[str] = ()) -> bool:
        """Tell whether a text shows the mismatch, from the cache if it was asked about before.

        A text that differs only in its names from one that does not show the mismatch is not asked about.
        ``following`` are the next candidates after a no. Raises ``BudgetExhausted`` before one question too many, and
        ``PassSuspended`` before one that the running pass is no longer allowed.
        """
        if text not in self.requested:
            if self.request_limit is not None and len(self.requested) >= self.request_limit:
                raise BudgetExhausted
            self.requested.add(text)
        if text not in self.answers:
            if not self.budget.allows(self.asked, self.seconds):
                raise BudgetExhausted
            if self.patience is not None and self.patience.has_ended(self.asked, self.sizes):
                raise PatienceEnded
            form = canonical_text(text)
            if form in self._refused:
                self.answers[text] = False
                return False
            if self.most_failures is not None and self.failures >= self.most_failures:
                raise PassSuspended
            if self.most_failures is not None and self.failures + 1 >= self.most_failures:
                following = ()  # a no suspends the pass, and another one goes on
            statistics, before = self.current, time.monotonic()
            self.asked += 1
            statistics.asked += 1
            self.expect(f"{other}\n" for other in following if self._is_asked_after(form, other))
            verdict = self.ask(text + "\n")
            self.answers[text] = verdict.same
            self.place = verdict.place if verdict.same else self.place
            statistics.seconds += time.monotonic() - before
            self.failures = 0 if self.answers[text] else self.failures + 1
            if not self.answers[text]:
                self._refused.add(form)
        return self.answers[text]

    def _is_asked_after(self, form: str, other: str) -> bool:
        """Tell whether a text is a question if the one of this canonical form is answered no."""
        if other in self.answers:
            return False
        other_form = canonical_text(other)
        return other_form != form and other_form not in self._refused

    def passes_filter(self, tree: ast.Module, text: str) -> bool:
        """Tell whether a candidate is worth a question."""
        if text not in self._accepted:
            self._accepted[text] = self.accepts(text) and self.filter.accepts(tree, text)
        return self._accepted[text]


def require_every_run(ask: Ask, ask_again: Ask, times: int) -> Ask:
    """Return an oracle that answers ``same`` only if further runs do too, else ``other`` (``not-every-time``).

    A script that always fails often has a neighbor that fails now and then. One question cannot tell them apart, and a
    reduction asks hundreds, so sooner or later it would accept the neighbor. So a candidate that shows the mismatch is
    run several ``times`` more. ``ask_again`` never answers from a cache.
    """

    def ask_every_time(source: str) -> Verdict:
        first = ask(source)
        for _ in range(times if first.same else 0):
            further = ask_again(source)
            if not further.same:
                return Verdict(Answer.OTHER, "not-every-time", f"once {first.answer}, then {further.answer}")
        return first

    return ask_every_time
