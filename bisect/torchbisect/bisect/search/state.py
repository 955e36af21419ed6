"""One search over an ordered list of builds: where did it become bad, and where good again?

``Search`` says which builds to ask next and is told the answers; it does no I/O and what it asks depends on nothing
but the answers, so that a killed search replayed from the journal asks the same. ``search.find`` is the loop round it.

What is certain whatever the truth: an edge's ends were seen to be what they are called, no build between them was
seen to be anything but untestable, and no more is claimed. Where the answers come and go more than once, each edge
is a real one, but not the only one; that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic

from torchbisect.bisect.search import boundary
from torchbisect.bisect.search.evidence import Edge, Finding, Findings, Skipped, Status, T, Tested, Which
from torchbisect.bisect.search.midpoints import answers_needed
from torchbisect.bisect.search.monotonicity import Run, is_monotone, runs_of

#: After so many builds that said something else when asked again, asking again is given up.
_DISAGREEMENTS = 3

NOT_ASKED = "not asked: the builds round it could not be tested"


@dataclass(frozen=True)
class Question(Generic[T]):
    """A build to ask, and whether it is asked a second time, for the check at the end."""

    item: T
    position: int
    again: bool = False


@dataclass
class _State:
    """What is known. Copied when the search looks ahead."""

    answers: dict[int, Status] = field(default_factory=dict)
    again: dict[int, Status] = field(default_factory=dict)
    slack: dict[Which, int] = field(default_factory=lambda: {Which.REGRESSION: 1, Which.FIX: 1})
    disagreements: int = 0

    def copy(self) -> _State:
        return _State(dict(self.answers), dict(self.again), dict(self.slack), self.disagreements)


class Search(Generic[T]):
    """A search in progress.

    Args:
        items: the builds, oldest first.
        bad: the position of a build believed to be bad; searched for from the newest back when ``None``.
        good: the position of a build believed to be good: older than ``bad`` for a regression, newer for a fix.
        find: which edges to look for.
        cached: whether a build costs no install; such builds are preferred, at the cost of one question at the most.
        rank: a number for a build that stays the same when the list grows, such as its date's ordinal; the position
            if not given.
        first_step: the first of the growing steps towards an unknown end, in builds.
        patience: after so many untestable builds in one range, builds between untestable ones are not asked any more.
        ask_again: which ends of a finished edge are asked a second time: none, the good one, or both.

    Raises:
        ValueError: for positions outside of the list or on the wrong side of each other.
    """

    def __init__(
        self,
        items: Sequence[T],
        *,
        bad: int | None = None,
        good: int | None = None,
        find: Which | str = Which.BOTH,
        cached: Callable[[T], bool] = lambda _: False,
        rank: Callable[[T], int] | None = None,
        first_step: int = 1,
        patience: int = 6,
        ask_again: str = "none",
    ) -> None:
        self.items = tuple(items)
        self.find = Which(find)
        self._bad, self._good = bad, good
        self._check()
        self._ask_again = ask_again
        self._cached, self._rank = cached, rank
        self._first_step, self._patience = first_step, patience
        self._state = _State()
        self._tested: list[Tested[T]] = []
        self._reasons: dict[int, str] = {}
        self._changed: list[str] = []

    def _check(self) -> None:
        for end in (self._bad, self._good):
            if end is not None and not 0 <= end < len(self.items):
                raise ValueError(f"position {end} is outside of the {len(self.items)} builds")
        if self._bad is None or self._good is None:
            return
        if self._good == self._bad:
            raise ValueError("the good and the bad end are the same build")
        if self.find is Which.REGRESSION and self._good > self._bad:
            raise ValueError("a regression's good end is older than its bad end")
        if self.find is Which.FIX and self._good < self._bad:
            raise ValueError("a fix's good end is newer than its bad end")

    # What to ask

    def next(self, count: int = 1, pending: Collection[int] = ()) -> tuple[Question[T], ...]:
        """The next questions, the most useful first; empty when the search is over.

        With ``count`` above one come the questions that the possible answers to the first would lead to.

        Args:
            count: how many at the most.
            pending: positions that are being asked just now.
        """
        found: list[Question[T]] = []
        for question in self._ahead(set(pending)):
            if len(found) == count:
                break
            found.append(question)
        return tuple(found)

    def likely(self, pending: Collection[int] | None = None) -> tuple[T, ...]:
        """The builds that may be asked next, once what is being asked now is answered: two at the most.

        Args:
            pending: positions that are being asked; the next question's if not given.
        """
        asking = {question.position for question in self.next()} if pending is None else set(pending)
        if len(asking) != 1:
            return tuple(question.item for question in self.next(2, asking))
        after = dict.fromkeys(p for state in self._after(self._state, min(asking)) for p in self._first(state))
        return tuple(self.items[position] for position in after if position not in asking)

    def _after(self, state: _State, position: int) -> Iterator[_State]:
        """What would be known if ``position`` were good, and if it were bad."""
        for status in (Status.GOOD, Status.BAD):
            after = state.copy()
            self._note(after, position, status, again=False)
            yield after

    def _first(self, state: _State) -> list[int]:
        return [position for position, _ in islice(self._wanted(state), 1)]

    def _ahead(self, pending: Collection[int]) -> Iterator[Question[T]]:
        """The questions to come, breadth first over the answers that the ones before may get."""
        states, met = [self._state], set(pending)
        for _ in range(32):
            if not states:
                return
            state = states.pop(0)
            wanted = list(self._wanted(state))
            for position, again in wanted:
                # Which ends to ask again is only known once they are ends for sure.
                if position not in met and not (again and state is not self._state):
                    met.add(position)
                    yield Question(self.items[position], position, again)
            for position, again in wanted:
                if not again:
                    states += self._after(state, position)

    def _wanted(self, state: _State) -> Iterator[tuple[int, bool]]:
        """What has to be asked for sure, whatever the other answers: at most one position for each edge."""
        anchor, question = self._anchor(state)
        if question is not None:
            yield question, False
        if anchor is None:
            return
        for which in self._sides():
            question = self._next_of(which, state, anchor)
            if question is not None:
                yield question, False
            else:
                yield from ((position, True) for position in self._unconfirmed(which, state, anchor))

    def _sides(self) -> tuple[Which, ...]:
        return (Which.REGRESSION, Which.FIX) if self.find is Which.BOTH else (self.find,)

    def _anchor(self, state: _State) -> tuple[int | None, int | None]:
        """The bad build from which the edges are sought, or what to ask to find one, or neither when there is none."""
        floor, ceiling = 0, len(self.items) - 1
        if self._good is not None:
            if self.find is Which.REGRESSION or (self._bad is not None and self._good < self._bad):
                floor = self._good + 1
            elif self.find is Which.FIX or self._bad is not None:
                ceiling = self._good - 1
        if floor > ceiling:
            return None, None
        bad = [p for p, status in state.answers.items() if status is Status.BAD and floor <= p <= ceiling]
        if self._bad is not None:
            if bad:
                return min(bad, key=lambda p: (abs(p - self._end()), -p)), None
            slid = self._slide(state, self._bad, floor, ceiling)
            if slid is not None:
                return None, slid
        elif bad:
            return max(bad), None
        if ceiling not in state.answers:
            return None, ceiling
        step = boundary.growing(
            ceiling + 1,
            floor,
            state.answers,
            self._manner(mirrored=False),
            lambda low, high: any(state.answers[p].testable for p in range(low, high + 1) if p in state.answers),
        )
        return None, floor if step is None and floor not in state.answers else step

    def _end(self) -> int:
        return self._bad if self._bad is not None else len(self.items) - 1

    def _slide(self, state: _State, start: int, floor: int, ceiling: int) -> int | None:
        """The named bad build, or while it is untestable the nearest one not asked yet; ``None`` when that is over."""
        if start not in state.answers:
            return start
        if state.answers[start] is not Status.UNTESTABLE:
            return None
        near = sorted(range(floor, ceiling + 1), key=lambda p: (abs(p - start), -p))[: self._patience]
        return next((p for p in near if p not in state.answers), None)

    def _next_of(self, which: Which, state: _State, anchor: int) -> int | None:
        turn = self._turner(which)
        answers = {turn(p): status for p, status in state.answers.items()}
        good = self._good_end(which, anchor)
        manner = self._manner(mirrored=which is Which.FIX)
        end = None if good is None else turn(good)
        position = boundary.next_question(answers, turn(anchor), end, manner, state.slack[which])
        return None if position is None else turn(position)

    def _good_end(self, which: Which, anchor: int) -> int | None:
        """The good end the user named, if it belongs to this edge."""
        if self._good is None or (self._good < anchor) is not (which is Which.REGRESSION):
            return None
        return self._good

    def _turner(self, which: Which) -> Callable[[int], int]:
        """Positions as an edge's search sees them: a fix is a regression read backwards. Its own inverse."""
        last = len(self.items) - 1
        return (lambda p: last - p) if which is Which.FIX else (lambda p: p)

    def _manner(self, *, mirrored: bool) -> boundary.Manner:
        turn = self._turner(Which.FIX if mirrored else Which.REGRESSION)
        rank = self._rank
        return boundary.Manner(
            rank=turn if rank is None else lambda p: rank(self.items[turn(p)]),
            cached=lambda p: self._cached(self.items[turn(p)]),
            first_step=self._first_step,
            patience=self._patience,
        )

    def _unconfirmed(self, which: Which, state: _State, anchor: int) -> Iterator[int]:
        """The ends of a finished edge that are still to be asked again, the good one last."""
        if self._ask_again == "none" or state.disagreements >= _DISAGREEMENTS:
            return
        turn = self._turner(which)
        known = boundary.bracket({turn(p): status for p, status in state.answers.items()}, turn(anchor))
        ends = [known.high] if self._ask_again == "both" else []
        ends += [known.low] if known.low >= 0 else []
        yield from (turn(end) for end in ends if turn(end) not in state.again)

    # What was answered

    def answer(self, question: Question[T], finding: Finding) -> None:
        """Take in the answer to a question that ``next`` gave; answers may come in any order."""
        position = question.position
        before = self._state.answers.get(position)
        self._tested.append(
            Tested(question.item, finding.status, finding.reason, finding.detail, finding.seconds, again=question.again)
        )
        if question.again and before is not None and finding.status is not before:
            said = finding.status.value + (f" ({finding.reason})" if finding.reason else "")
            self._changed.append(f"{question.item} was {before} at first and {said} when asked again")
        if finding.status is Status.UNTESTABLE and not (question.again and before is not None):
            self._reasons[position] = finding.reason or "untestable"
        self._note(self._state, position, finding.status, question.again)

    def _note(self, state: _State, position: int, status: Status, again: bool) -> None:
        anchor, _ = self._anchor(state)
        if again:
            state.again[position] = status
            if not status.testable or status is state.answers.get(position):
                return
            state.disagreements += 1
        size = {} if anchor is None else {which: self._unasked(which, state, anchor) for which in self._sides()}
        state.answers[position] = status
        for which, before in size.items():
            if before is None or anchor is None or state.answers.get(anchor) is not Status.BAD:
                continue
            left = self._unasked(which, state, anchor)
            if left is None or not before:
                continue
            if not status.testable:
                state.slack[which] += left < before
            elif left < before and answers_needed(left) >= answers_needed(before):
                state.slack[which] = max(0, state.slack[which] - 1)

    def _unasked(self, which: Which, state: _State, anchor: int) -> int | None:
        """How many builds an edge's range still holds unasked; ``None`` while it has no good end."""
        turn = self._turner(which)
        answers = {turn(p): status for p, status in state.answers.items()}
        known = boundary.bracket(answers, turn(anchor))
        return None if known.low < 0 else sum(p not in answers for p in known.inside)

    # What it comes to

    def findings(self) -> Findings[T]:
        """What is known so far; once ``next`` has nothing more, the result."""
        anchor, _ = self._anchor(self._state)
        found = {which: None if anchor is None else self._edge(which, anchor) for which in self._sides()}
        runs = runs_of(self._state.answers)
        return Findings(
            regression=found.get(Which.REGRESSION),
            fix=found.get(Which.FIX),
            tested=tuple(self._tested),
            notices=tuple(self._notices(anchor, runs)),
            monotone=is_monotone(runs),
            questions=len(self._tested),
        )

    def _edge(self, which: Which, anchor: int) -> Edge[T]:
        turn = self._turner(which)
        answers = {turn(p): status for p, status in self._state.answers.items()}
        known = boundary.bracket(answers, turn(anchor))
        inside = sorted(turn(p) for p in known.inside)
        good = None if known.low < 0 else turn(known.low)
        bad = turn(known.high)
        before, after = (good, bad) if which is Which.REGRESSION else (bad, good)
        again = None if good is None else self._state.again.get(good)
        return Edge(
            which=which,
            before=None if before is None else self.items[before],
            after=None if after is None else self.items[after],
            between=tuple(Skipped(self.items[p], self._reasons.get(p, NOT_ASKED)) for p in inside),
            exact=good is not None and not inside,
            confirmed=None if again is None else again is Status.GOOD,
        )

    def _notices(self, anchor: int | None, runs: Sequence[Run]) -> Iterator[str]:
        answers = self._state.answers
        if self._bad is not None and answers.get(self._bad, Status.BAD) is not Status.BAD:
            yield self._slid(self._bad, "bad", anchor)
        if self._good is not None and answers.get(self._good, Status.GOOD) is not Status.GOOD:
            yield self._slid(self._good, "good", None)
        if anchor is None:
            yield "the mismatch was not seen in any build that was tested" if answers else "there is no build to ask"
        yield from self._changed
        if self._state.disagreements >= _DISAGREEMENTS:
            yield "builds gave another answer when asked again, several times: repeat each question (--repeat)"
        if not is_monotone(runs):
            yield (
                "the answer changes more often than once each way: "
                + ", ".join(run.words(self.items) for run in runs)
                + "; other changes may lie between these"
            )

    def _slid(self, position: int, called: str, anchor: int | None) -> str:
        status = self._state.answers[position]
        if status.testable:
            return f"{self.items[position]} was given as {called} and is {status}"
        text = f"{self.items[position]}, given as {called}, can't be tested ({self._reasons[position]})"
        return text if anchor is None else f"{text}: {self.items[anchor]} was taken in its place"
