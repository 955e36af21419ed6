"""The search for a flaky repro: ask the most informative build, and stop at the wanted confidence.

A bad build may pass by chance, so binary search on single answers goes wrong: with a bug that shows in every third
run it would be wrong two times in three. Here every answer updates a posterior over all culprits (``posterior``). The
next build is the one that is expected to reduce its entropy most for its cost. The search stops when one answer has
the stated confidence. Confident but wrong results are then no more frequent than the confidence allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

from torchbisect.bisect.search.evidence import (
    AskedBuild,
    Boundary,
    BoundaryKind,
    BuildAnswer,
    BuildStatus,
    SearchResult,
    SkippedBuild,
    T,
)
from torchbisect.bisect.search.posterior import UNKNOWN, BetaRate, Posterior
from torchbisect.bisect.search.search_options import FlakySearchOptions

#: Builds whose gain differs by less than this are equally informative; the first of them is asked.
_EQUAL_GAIN = 1e-9


class FlakySearch(Generic[T]):
    """A search for one boundary in progress, seen as a regression: good builds first, then bad ones.

    Args:
        builds: the builds, the good end first; the last one is known to be bad.
        good_known: the first build is known to be good.
        bad_rate: the prior of how often a bad build shows the mismatch.
        confidence: the probability that the answer must reach; ``ValueError`` below 0.5 and from 1 on.
        cost: the cost of one question about a build; an install costs more than a run.
    """

    def __init__(
        self,
        builds: Sequence[T],
        *,
        good_known: bool = False,
        bad_rate: BetaRate = UNKNOWN,
        confidence: float = 0.95,
        cost: Callable[[T], float] = lambda _: 1.0,
    ) -> None:
        if not 0.5 <= confidence < 1:
            raise ValueError("a confidence must be at least 0.5 and below 1")
        self.builds = tuple(builds)
        self._first = 1 if good_known else 0
        first_culprit = self._first if len(self.builds) > 1 else 0
        self._posterior = Posterior(len(self.builds), first_culprit, bad_rate=bad_rate)
        self._confidence = confidence
        self._cost = cost
        self._untestable: dict[int, str] = {}

    def next(self) -> int | None:
        """Return the position to ask next; ``None`` if one answer is likely enough or no build is informative."""
        if self._confident() or len(self._untestable) == len(self.builds):
            return None
        now = self._posterior.entropy()
        expected = self._posterior.expected_entropies()
        best, best_gain = None, _EQUAL_GAIN
        for position, build in enumerate(self.builds):
            if position in self._untestable:
                continue
            gain = (now - expected[position]) / self._cost(build)
            if gain > best_gain + _EQUAL_GAIN:
                best, best_gain = position, gain
        return best

    def answer(self, position: int, answer: BuildAnswer) -> None:
        """Take in one answer."""
        if answer.status is BuildStatus.UNTESTABLE:
            self._untestable[position] = answer.reason or "untestable"
        else:
            self._posterior.update(position, answer.status is BuildStatus.BAD)

    def _confident(self) -> bool:
        return self._posterior.probability(*self._likeliest()) >= self._confidence

    def _likeliest(self) -> tuple[int, int]:
        weights = self._posterior.weights
        best = max(range(len(weights)), key=weights.__getitem__)
        return self._indistinguishable(best, best)

    def _indistinguishable(self, first: int, last: int) -> tuple[int, int]:
        """Widen a range of culprits by those that only untestable builds separate from it."""
        while first > self._first and first - 1 in self._untestable:
            first -= 1
        while last in self._untestable and last + 1 < len(self.builds):
            last += 1
        return first, last

    def boundary(self, kind: BoundaryKind) -> Boundary[T]:
        """Return what is known so far; once ``next`` returns ``None``, the result."""
        first, last = self._likeliest()
        if self._posterior.probability(first, last) < self._confidence:
            first, last = self._indistinguishable(*self._posterior.credible_range(self._confidence))
        between = tuple(
            SkippedBuild(self.builds[p], self._untestable.get(p, "not told apart from its neighbors"))
            for p in range(first, last)
        )
        good = self.builds[first - 1] if first > 0 else None
        bad = self.builds[last]
        notice = f"the mismatch shows in about {self._posterior.mean_bad_rate():.0%} of the runs of a bad build"
        boundary = Boundary(
            kind=kind,
            before=good,
            after=bad,
            between=between,
            exact=good is not None and not between,
            notices=(notice,),
            confidence=round(self._posterior.probability(first, last), 4),
        )
        if kind is BoundaryKind.REGRESSION:
            return boundary
        return replace(boundary, before=bad, after=good, between=tuple(reversed(between)))


def find_flaky_boundaries(
    builds: Sequence[T],
    ask: Callable[[T], BuildAnswer],
    options: FlakySearchOptions[T],
    *,
    known: Callable[[T], Sequence[BuildAnswer]] = lambda _: (),
    on_answer: Callable[[AskedBuild[T]], None] = lambda _: None,
) -> SearchResult[T]:
    """Find where a bug came and where it went, if its mismatch shows only in some runs.

    Args:
        builds: the builds, oldest first.
        ask: runs a build once: bad if the mismatch showed, good if not. The same build may be asked many times.
        options: what to look for, and how certain to be; ``ValueError`` if it is impossible.
        known: the answers of a build's runs in an earlier search; all of them are evidence from the start.
        on_answer: called with each answer.
    """
    options.check(builds)
    tested = [AskedBuild.of(build, answer) for build in builds for answer in known(build)]
    found: dict[BoundaryKind, Boundary[T]] = {}
    for kind in (BoundaryKind.REGRESSION, BoundaryKind.FIX):
        if options.kind not in (kind, BoundaryKind.BOTH):
            continue
        line, good_known = _good_to_bad(builds, options, kind)
        search = FlakySearch(
            line,
            good_known=good_known,
            bad_rate=UNKNOWN.after(options.shown, options.runs),
            confidence=options.confidence,
            cost=options.cost,
        )
        for position, build in enumerate(line):
            for answer in known(build):
                search.answer(position, answer)
        for _ in range(options.limit):
            asked = search.next()
            if asked is None:
                break
            answer = ask(line[asked])
            search.answer(asked, answer)
            tested.append(AskedBuild.of(line[asked], answer))
            on_answer(tested[-1])
        found[kind] = search.boundary(kind)
    return SearchResult(found.get(BoundaryKind.REGRESSION), found.get(BoundaryKind.FIX), tuple(tested))


def _good_to_bad(builds: Sequence[T], options: FlakySearchOptions[T], kind: BoundaryKind) -> tuple[Sequence[T], bool]:
    """Return the builds from the good end to the bad one, and true if the first of them is known to be good."""
    bad, good, is_regression = options.bad, options.good, kind is BoundaryKind.REGRESSION
    good_known = good is not None and (good < bad) is is_regression
    if good is None or not good_known:
        good = 0 if is_regression else len(builds) - 1
    return (builds[good : bad + 1] if is_regression else builds[bad : good + 1][::-1]), good_known
