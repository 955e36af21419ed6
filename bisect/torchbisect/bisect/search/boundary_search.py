"""The state of a boundary search: it takes in answers and says which builds to ask next.

``BoundarySearch`` does no I/O, and its questions depend on the answers alone. So a killed search that is replayed from
the journal asks the same. ``find.find_boundaries`` is the loop around it.

Whatever the truth: each end of a boundary was seen to be what it is called, and no build between the ends was seen to
be good or bad. Where the answer changes more than once each way, each boundary is a real one, but not the only one;
that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic

from torchbisect.bisect.search.boundary import (
    Preferences,
    Range,
    answers_needed,
    growing_step,
    narrowest_range,
    next_position,
)
from torchbisect.bisect.search.evidence import (
    AskedBuild,
    Boundary,
    BoundaryKind,
    BuildAnswer,
    BuildQuestion,
    BuildStatus,
    SearchResult,
    SkippedBuild,
    T,
)
from torchbisect.bisect.search.search_options import SearchOptions

#: After this many builds that answered differently the second time, no more builds are asked twice.
_MOST_CHANGED_ANSWERS = 3

#: The search looks ahead over this many combinations of answers.
_STATES_AHEAD = 32

NOT_ASKED = "not asked: the builds around it could not be tested"


@dataclass
class _State:
    """The known answers. The search copies it to look ahead.

    Attributes:
        answers: the answer of each position that was asked.
        rechecked: the second answer of the positions that were asked twice.
        slack: for each boundary, the number of answers that it may cost above the minimum.
        changed: the number of second answers that differ from the first.
    """

    answers: dict[int, BuildStatus] = field(default_factory=dict)
    rechecked: dict[int, BuildStatus] = field(default_factory=dict)
    slack: dict[BoundaryKind, int] = field(default_factory=lambda: {BoundaryKind.REGRESSION: 1, BoundaryKind.FIX: 1})
    changed: int = 0

    def copy(self) -> _State:
        return _State(dict(self.answers), dict(self.rechecked), dict(self.slack), self.changed)


class BoundarySearch(Generic[T]):
    """A search in progress over builds, oldest first; see ``SearchOptions``.

    Raise ``ValueError`` for ends outside of the builds or on the wrong side of each other.
    """

    def __init__(self, builds: Sequence[T], options: SearchOptions[T] | None = None) -> None:
        self.builds = tuple(builds)
        self.options: SearchOptions[T] = options or SearchOptions()
        self.options.check(self.builds)
        self._state = _State()
        self._asked: list[AskedBuild[T]] = []
        self._reasons: dict[int, str] = {}
        self._changed_answers: list[str] = []

    # Questions

    def next(self, count: int = 1, pending: Collection[int] = ()) -> tuple[BuildQuestion[T], ...]:
        """Return the next questions, ``count`` at most, the most useful first; none when the search is over.

        With ``count`` above one, questions follow to which the possible answers of the first ones would lead.
        Positions in ``pending`` are being asked now.
        """
        return tuple(islice(self._questions_ahead(pending), count))

    def likely(self, pending: Collection[int] | None = None) -> tuple[T, ...]:
        """Return the builds, two at most, that may be asked after those at the ``pending`` positions.

        By default, the next question is pending.
        """
        asking = {question.position for question in self.next()} if pending is None else set(pending)
        if len(asking) != 1:
            return tuple(question.item for question in self.next(2, asking))
        following = dict.fromkeys(
            position
            for state in self._states_after(self._state, min(asking))
            for position, _ in islice(self._certain_questions(state), 1)
        )
        return tuple(self.builds[position] for position in following if position not in asking)

    def _states_after(self, state: _State, position: int) -> Iterator[_State]:
        """Yield the state if ``position`` were good, and the state if it were bad."""
        for status in (BuildStatus.GOOD, BuildStatus.BAD):
            after = state.copy()
            self._note(after, position, status, recheck=False)
            yield after

    def _questions_ahead(self, pending: Collection[int]) -> Iterator[BuildQuestion[T]]:
        """Yield the questions to come, breadth first over the possible answers to the earlier ones."""
        states, met = [self._state], set(pending)
        for _ in range(_STATES_AHEAD):
            if not states:
                return
            state = states.pop(0)
            certain = list(self._certain_questions(state))
            for position, recheck in certain:
                # An end is asked a second time only once it is an end for certain.
                if position not in met and not (recheck and state is not self._state):
                    met.add(position)
                    yield BuildQuestion(self.builds[position], position, recheck)
            for position, recheck in certain:
                if not recheck:
                    states += self._states_after(state, position)

    def _certain_questions(self, state: _State) -> Iterator[tuple[int, bool]]:
        """Yield what must be asked whatever the other answers: for each boundary one position, or its ends."""
        believed = self._believed(state)
        anchor, position = self._anchor(believed)
        if position is not None:
            yield position, False
        if anchor is None:
            return
        for kind in self._kinds():
            position = self._next_position(kind, believed, anchor)
            unasked = [end for end in self._ends(kind, believed, anchor) if end not in state.answers]
            if position is not None:
                yield position, False
            elif unasked:
                yield from ((end, False) for end in unasked)
            else:
                yield from ((end, True) for end in self._ends_to_recheck(kind, state, anchor))

    def _believed(self, state: _State) -> _State:
        """Return the state as if the ends that the user named had answered, where they have not been asked."""
        if self.options.ends_first:
            return state
        named = {self.options.bad: BuildStatus.BAD, self.options.good: BuildStatus.GOOD}
        ends = {position: status for position, status in named.items() if position is not None}
        return replace(state, answers={**ends, **state.answers})

    def _kinds(self) -> tuple[BoundaryKind, ...]:
        kind = self.options.kind
        return (BoundaryKind.REGRESSION, BoundaryKind.FIX) if kind is BoundaryKind.BOTH else (kind,)

    def _anchor(self, state: _State) -> tuple[int | None, int | None]:
        """Return the bad build from which the boundaries are sought, or the position to ask to find one, or neither."""
        floor, ceiling = self._anchor_bounds()
        if floor > ceiling:
            return None, None
        bad = [p for p, status in state.answers.items() if status is BuildStatus.BAD and floor <= p <= ceiling]
        named = self.options.bad
        if named is not None:
            if bad:
                return min(bad, key=lambda p: (abs(p - named), -p)), None
            position = self._near_bad_end(state, named, floor, ceiling)
            if position is not None:
                return None, position
        elif bad:
            return max(bad), None
        if ceiling not in state.answers:
            return None, ceiling
        step = growing_step(
            ceiling + 1,
            floor,
            state.answers,
            self._preferences(BoundaryKind.REGRESSION),
            lambda low, high: any(state.answers[p].testable for p in range(low, high + 1) if p in state.answers),
        )
        return None, floor if step is None and floor not in state.answers else step

    def _anchor_bounds(self) -> tuple[int, int]:
        """Return the oldest and the newest position of a bad build that fits the good end."""
        bad, good, kind = self.options.bad, self.options.good, self.options.kind
        floor, ceiling = 0, len(self.builds) - 1
        if good is not None:
            if kind is BoundaryKind.REGRESSION or (bad is not None and good < bad):
                floor = good + 1
            elif kind is BoundaryKind.FIX or bad is not None:
                ceiling = good - 1
        return floor, ceiling

    def _near_bad_end(self, state: _State, start: int, floor: int, ceiling: int) -> int | None:
        """Return the named bad build or, while it is untestable, the nearest unasked one within ``patience``."""
        if start not in state.answers:
            return start
        if state.answers[start] is not BuildStatus.UNTESTABLE:
            return None
        near = sorted(range(floor, ceiling + 1), key=lambda p: (abs(p - start), -p))[: self.options.patience]
        return next((p for p in near if p not in state.answers), None)

    def _next_position(self, kind: BoundaryKind, state: _State, anchor: int) -> int | None:
        mirror = self._mirror(kind)
        answers = {mirror(p): status for p, status in state.answers.items()}
        good = self._good_end(kind, anchor)
        end = None if good is None else mirror(good)
        position = next_position(answers, mirror(anchor), end, self._preferences(kind), state.slack[kind])
        return None if position is None else mirror(position)

    def _good_end(self, kind: BoundaryKind, anchor: int) -> int | None:
        """Return the good end that the user named, if it belongs to this boundary."""
        good = self.options.good
        return None if good is None or (good < anchor) is not (kind is BoundaryKind.REGRESSION) else good

    def _mirror(self, kind: BoundaryKind) -> Callable[[int], int]:
        """Return the map of positions for ``boundary``: a fix is a regression read backwards. It is its own inverse."""
        last = len(self.builds) - 1
        return (lambda p: last - p) if kind is BoundaryKind.FIX else (lambda p: p)

    def _preferences(self, kind: BoundaryKind) -> Preferences:
        mirror, options = self._mirror(kind), self.options
        rank = options.rank
        return Preferences(
            rank=mirror if rank is None else lambda p: rank(self.builds[mirror(p)]),
            cached=lambda p: options.cached(self.builds[mirror(p)]),
            first_step=options.first_step,
            patience=options.patience,
        )

    def _range(self, kind: BoundaryKind, state: _State, anchor: int) -> Range:
        """Return the narrowest range of a boundary, in mirrored positions."""
        mirror = self._mirror(kind)
        return narrowest_range({mirror(p): status for p, status in state.answers.items()}, mirror(anchor))

    def _ends_to_recheck(self, kind: BoundaryKind, state: _State, anchor: int) -> Iterator[int]:
        """Yield the ends of a finished boundary that are still to be asked a second time, the good one last."""
        if self.options.recheck == "none" or state.changed >= _MOST_CHANGED_ANSWERS:
            return
        ends = self._ends(kind, state, anchor)[0 if self.options.recheck == "both" else 1 :]
        yield from (end for end in ends if end not in state.rechecked)

    def _ends(self, kind: BoundaryKind, state: _State, anchor: int) -> list[int]:
        """Return the positions of a boundary's ends: the bad one, and the good one if it is known."""
        mirror, known = self._mirror(kind), self._range(kind, state, anchor)
        return [mirror(known.high), *([mirror(known.low)] if known.low >= 0 else [])]

    # Answers

    def answer(self, question: BuildQuestion[T], answer: BuildAnswer) -> None:
        """Take in the answer to a question that ``next`` returned; answers may come in any order."""
        position = question.position
        before = self._state.answers.get(position)
        self._asked.append(AskedBuild.of(question.item, answer, recheck=question.recheck))
        is_second = question.recheck and before is not None
        if is_second and answer.status is not before:
            said = answer.status.value + (f" ({answer.reason})" if answer.reason else "")
            self._changed_answers.append(f"{question.item} was {before} at first and {said} when asked again")
        if answer.status is BuildStatus.UNTESTABLE and not is_second:
            self._reasons[position] = answer.reason or "untestable"
        self._note(self._state, position, answer.status, question.recheck)

    @property
    def asked(self) -> Sequence[AskedBuild[T]]:
        """The finished questions, in the order of the answers."""
        return self._asked

    def _note(self, state: _State, position: int, status: BuildStatus, recheck: bool) -> None:
        """Enter an answer into a state, and adjust the slack of each boundary to what it narrowed."""
        earlier = self._believed(state)
        anchor, _ = self._anchor(earlier)
        if recheck:
            state.rechecked[position] = status
            if not status.testable or status is state.answers.get(position):
                return
            state.changed += 1
        unasked = {} if anchor is None else {kind: self._unasked(kind, earlier, anchor) for kind in self._kinds()}
        state.answers[position] = status
        later = self._believed(state)
        for kind, before in unasked.items():
            if not before or anchor is None or later.answers.get(anchor) is not BuildStatus.BAD:
                continue
            left = self._unasked(kind, later, anchor)
            if left is None:
                continue
            if not status.testable:
                state.slack[kind] += left < before
            elif left < before and answers_needed(left) >= answers_needed(before):
                state.slack[kind] = max(0, state.slack[kind] - 1)

    def _unasked(self, kind: BoundaryKind, state: _State, anchor: int) -> int | None:
        """Return the number of unasked builds in a boundary's range; ``None`` while it has no good end."""
        mirror, known = self._mirror(kind), self._range(kind, state, anchor)
        return None if known.low < 0 else sum(mirror(p) not in state.answers for p in known.inside)

    # Result

    def result(self) -> SearchResult[T]:
        """Return what is known so far; once ``next`` returns nothing more, the result."""
        anchor, _ = self._anchor(self._state)
        found = {kind: None if anchor is None else self._boundary(kind, anchor) for kind in self._kinds()}
        runs = answer_runs(self._state.answers)
        return SearchResult(
            regression=found.get(BoundaryKind.REGRESSION),
            fix=found.get(BoundaryKind.FIX),
            tested=tuple(self._asked),
            notices=tuple(self._notices(anchor, runs)),
        )

    def _boundary(self, kind: BoundaryKind, anchor: int) -> Boundary[T]:
        mirror, known = self._mirror(kind), self._range(kind, self._state, anchor)
        inside = sorted(mirror(p) for p in known.inside)
        good = None if known.low < 0 else mirror(known.low)
        bad = mirror(known.high)
        before, after = (good, bad) if kind is BoundaryKind.REGRESSION else (bad, good)
        second = None if good is None else self._state.rechecked.get(good)
        return Boundary(
            kind=kind,
            before=None if before is None else self.builds[before],
            after=None if after is None else self.builds[after],
            between=tuple(SkippedBuild(self.builds[p], self._reasons.get(p, NOT_ASKED)) for p in inside),
            exact=good is not None and not inside,
            confirmed=None if second is None else second is BuildStatus.GOOD,
        )

    def _notices(self, anchor: int | None, runs: Sequence[AnswerRun]) -> Iterator[str]:
        answers, bad, good = self._state.answers, self.options.bad, self.options.good
        if bad is not None and answers.get(bad, BuildStatus.BAD) is not BuildStatus.BAD:
            yield self._wrong_end(bad, "bad", anchor)
        if good is not None and answers.get(good, BuildStatus.GOOD) is not BuildStatus.GOOD:
            yield self._wrong_end(good, "good", None)
        if anchor is None:
            yield "the mismatch was not seen in any build that was tested" if answers else "there is no build to ask"
        yield from self._changed_answers
        if self._state.changed >= _MOST_CHANGED_ANSWERS:
            yield "builds gave another answer when asked again, several times: repeat each question (--repeat)"
        if not is_monotone(runs):
            yield (
                "the answer changes more often than once each way: "
                + ", ".join(run.describe(self.builds) for run in runs)
                + "; other changes may lie between these"
            )

    def _wrong_end(self, position: int, named: str, anchor: int | None) -> str:
        """Return the notice for an end that is not what the user named it."""
        status = self._state.answers[position]
        if status.testable:
            return f"{self.builds[position]} was given as {named} and is {status}"
        text = f"{self.builds[position]}, given as {named}, can't be tested ({self._reasons[position]})"
        return text if anchor is None else f"{text}: {self.builds[anchor]} was taken in its place"


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
