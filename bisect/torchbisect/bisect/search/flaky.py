"""The search for a repro that fails only sometimes: ask what is expected to tell most, stop when sure enough.

A build that passes may still have the bug, so halving on single answers goes astray: with a bug that shows in every
third run it would be wrong two times in three. Here every answer moves a belief over all culprits (``posterior``), the
next question is the one after which that belief is expected to be sharpest for what it costs, and the search stops
when one answer holds the stated confidence. "Confident but wrong" then happens no more often than that allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

from torchbisect.bisect.search.evidence import Edge, Finding, Findings, Skipped, Status, T, Tested, Which
from torchbisect.bisect.search.posterior import RARELY, UNKNOWN, Belief, Rate

#: Builds at most so much worse than the best question are as good: then the cheaper is asked, and of those the newest.
_AS_GOOD = 1e-9


class NoisySearch(Generic[T]):
    """A search for one edge in progress, seen as a regression: good builds first, bad ones from the culprit on.

    Args:
        items: the builds, the good end first; the last one is known to be bad.
        good_known: whether the first build is known to be good.
        having: the belief in how often a bad build shows the mismatch, as measured before.
        without: the same for a good build.
        confidence: how sure to be.
        cost: what one question about a build costs; an install weighs more than a run.
    """

    def __init__(
        self,
        items: Sequence[T],
        *,
        good_known: bool = False,
        having: Rate = UNKNOWN,
        without: Rate = RARELY,
        confidence: float = 0.95,
        cost: Callable[[T], float] = lambda _: 1.0,
    ) -> None:
        if not 0.5 <= confidence < 1:
            raise ValueError("a confidence lies between 0.5 and 1")
        self.items = tuple(items)
        self._belief = Belief(len(self.items), 1 if good_known and len(self.items) > 1 else 0, without, having)
        self._confidence = confidence
        self._cost = cost
        self._untestable: dict[int, str] = {}
        self._first = 1 if good_known else 0

    def next(self) -> int | None:
        """The position to ask next; ``None`` when one answer is likely enough, or nothing more can be told."""
        if self._confident() or len(self._untestable) == len(self.items):
            return None
        now = self._belief.entropy()
        expected = self._belief.expected_entropies()
        best, worth = None, _AS_GOOD
        for position, item in enumerate(self.items):
            if position in self._untestable:
                continue
            gain = (now - expected[position]) / self._cost(item)
            if gain > worth + _AS_GOOD:
                best, worth = position, gain
        return best

    def answer(self, position: int, finding: Finding) -> None:
        """Take in one answer."""
        if finding.status is Status.UNTESTABLE:
            self._untestable[position] = finding.reason or "untestable"
        else:
            self._belief.answer(position, finding.status is Status.BAD)

    def _group(self, first: int, last: int) -> tuple[int, int]:
        """Culprits that can't be told from ``first`` to ``last``, as only untestable builds lie between them."""
        while first > self._first and first - 1 in self._untestable:
            first -= 1
        while last in self._untestable and last + 1 < len(self.items):
            last += 1
        return first, last

    def _confident(self) -> bool:
        return self._belief.mass(*self._likeliest()) >= self._confidence

    def _likeliest(self) -> tuple[int, int]:
        weights = self._belief.weights
        best = max(range(len(weights)), key=weights.__getitem__)
        return self._group(best, best)

    def edge(self, which: Which) -> Edge[T]:
        """What is known so far; once ``next`` has nothing more, the result."""
        first, last = self._likeliest()
        sure = self._belief.mass(first, last) >= self._confidence
        if not sure:
            first, last = self._group(*self._belief.credible(self._confidence))
        inside = range(first, last)
        between = [
            Skipped(self.items[p], self._untestable.get(p, "not told apart from its neighbours")) for p in inside
        ]
        good = self.items[first - 1] if first > 0 else None
        bad = self.items[last]
        confidence = round(self._belief.mass(first, last), 4)
        rate = self._belief.having_rate()
        notice = f"the mismatch shows in about {rate:.0%} of the runs of a bad build"
        edge = Edge(
            which=which,
            before=good,
            after=bad,
            between=tuple(between),
            exact=good is not None and not between,
            notices=(notice,),
            confidence=confidence,
        )
        if which is Which.REGRESSION:
            return edge
        return replace(edge, before=bad, after=good, between=tuple(reversed(between)))


def find_flaky(
    items: Sequence[T],
    ask: Callable[[T], Finding],
    *,
    bad: int,
    good: int | None = None,
    find: Which | str = Which.BOTH,
    shown: int = 0,
    asked: int = 0,
    confidence: float = 0.95,
    limit: int = 200,
    cost: Callable[[T], float] = lambda _: 1.0,
    known: Callable[[T], Sequence[Finding]] = lambda _: (),
    on_answer: Callable[[Tested[T]], None] = lambda _: None,
) -> Findings[T]:
    """Search for the edges of a mismatch that shows only in some runs.

    Args:
        items: the builds, oldest first.
        ask: one run of a build: bad if it showed the mismatch, good if not. The same build may be asked many times.
        bad: the position of a build that has shown it.
        good: the position of a build known not to have the bug, older (for a regression) or newer (for a fix).
        shown: in how many of ``asked`` runs of the bad build it was measured to show.
        confidence: how sure to be of each edge.
        limit: questions at most for each edge; what isn't certain then is given as the range that is.
        cost: what one question about a build costs.
        known: what an earlier search was told in its runs of a build; all of it is evidence from the start.
        on_answer: told of each answer.

    Raises:
        ValueError: for positions or figures that can't be.
    """
    wanted = Which(find)
    if not 0 <= bad < len(items) or (good is not None and not 0 <= good < len(items)) or good == bad:
        raise ValueError("the ends are two positions among the builds")
    having = UNKNOWN.after(shown, asked)
    tested = [
        Tested(item, finding.status, finding.reason, finding.detail, finding.seconds)
        for item in items
        for finding in known(item)
    ]
    edges: dict[Which, Edge[T]] = {}
    for which in (Which.REGRESSION, Which.FIX):
        if wanted not in (which, Which.BOTH):
            continue
        older = which is Which.REGRESSION
        end = good if good is not None and (good < bad) is older else None
        far = (0 if older else len(items) - 1) if end is None else end
        line = items[far : bad + 1] if older else items[bad : far + 1][::-1]
        search = NoisySearch(line, good_known=end is not None, having=having, confidence=confidence, cost=cost)
        for place, item in enumerate(line):
            for finding in known(item):
                search.answer(place, finding)
        for _ in range(limit):
            position = search.next()
            if position is None:
                break
            finding = ask(line[position])
            search.answer(position, finding)
            tested.append(Tested(line[position], finding.status, finding.reason, finding.detail, finding.seconds))
            on_answer(tested[-1])
        edges[which] = search.edge(which)
    return Findings(edges.get(Which.REGRESSION), edges.get(Which.FIX), tuple(tested), questions=len(tested))
