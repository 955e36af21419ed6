"""The belief about where a flaky mismatch came in, and which question would sharpen it most.

Every build before the culprit shows the mismatch in a share ``g`` of its runs (nearly never), every one from it on in a
share ``b``. Neither is known: both are integrated out under Beta priors, so the belief is exact for the answers
so far, whatever was asked and whenever one stops (the model is hauntsaninja/git_bayesect's). Each step costs time
linear in the number of builds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Rate:
    """A belief in how often a build shows the mismatch: a Beta distribution, as counts of runs imagined or seen."""

    shown: float
    not_shown: float

    def after(self, shown: int, asked: int) -> Rate:
        """The belief once it was shown in so many of so many runs more."""
        return Rate(self.shown + shown, self.not_shown + asked - shown)


#: A build without the bug: a mismatch of the same signature by chance is rare.
RARELY = Rate(0.5, 30.0)
#: A build with the bug, of which nothing was measured.
UNKNOWN = Rate(1.0, 1.0)


class Belief:
    """The belief over the culprits 0 to ``size`` - 1: the first build that has the bug.

    Args:
        size: how many builds.
        first: the first that may be the culprit, as the one before it is known to be good; 0 if none is.
        without: how often a build without the bug shows the mismatch.
        having: how often one with it does.
    """

    def __init__(self, size: int, first: int = 0, without: Rate = RARELY, having: Rate = UNKNOWN) -> None:
        self._shown = [0] * size
        self._not = [0] * size
        self._first = first
        self._without, self._having = without, having
        self._refresh()

    def answer(self, position: int, shown: bool) -> None:
        """Take in one run of a build."""
        (self._shown if shown else self._not)[position] += 1
        self._refresh()

    def _refresh(self) -> None:
        size = len(self._shown)
        before_shown = [0, *accumulate(self._shown)]
        before_not = [0, *accumulate(self._not)]
        logs: list[float] = []
        self._chance: list[tuple[float, float]] = []
        for culprit in range(self._first, size):
            good = Rate(self._without.shown + before_shown[culprit], self._without.not_shown + before_not[culprit])
            bad = Rate(
                self._having.shown + before_shown[size] - before_shown[culprit],
                self._having.not_shown + before_not[size] - before_not[culprit],
            )
            logs.append(_log_beta(good) + _log_beta(bad))
            self._chance.append((_mean(good), _mean(bad)))
        highest = max(logs)
        weights = [math.exp(log - highest) for log in logs]
        total = math.fsum(weights)
        #: How likely each culprit is.
        self.weights: list[float] = [0.0] * self._first + [weight / total for weight in weights]

    def expected_entropies(self) -> list[float]:
        """For each build the entropy, in bits, that the belief is expected to have after one more run of it.

        After a run of build ``i`` the weight of culprit ``c`` is multiplied by the chance of what was seen: that of
        a good build if ``i`` is before ``c``, else that of a bad one. So all builds' sums are prefix and suffix sums.
        """
        weights = self.weights[self._first :]
        expected = [0.0] * len(self._shown)
        for seen in (True, False):
            good = [w * (g if seen else 1 - g) for w, (g, _) in zip(weights, self._chance)]
            bad = [w * (b if seen else 1 - b) for w, (_, b) in zip(weights, self._chance)]
            bad_sum, bad_log = _prefix(bad), _prefix([_xlogx(v) for v in bad])
            good_sum, good_log = _prefix(good), _prefix([_xlogx(v) for v in good])
            for position in range(len(expected)):
                # Culprits up to ``position`` make that build a bad one, later culprits a good one.
                split = max(0, position - self._first + 1)
                chance = bad_sum[split] + good_sum[-1] - good_sum[split]
                logs = bad_log[split] + good_log[-1] - good_log[split]
                if chance > 0:
                    expected[position] += chance * math.log2(chance) - logs
        return expected

    def entropy(self) -> float:
        """The entropy of the belief, in bits: how many good questions it is away from certainty."""
        return -math.fsum(_xlogx(weight) for weight in self.weights)

    def having_rate(self) -> float:
        """How often builds with the bug are believed to show it."""
        return math.fsum(w * b for w, (_, b) in zip(self.weights[self._first :], self._chance))

    def credible(self, confidence: float) -> tuple[int, int]:
        """The shortest run of culprits, first and last, that holds this much of the belief."""
        sums = _prefix(self.weights)
        best = (self._first, len(self.weights) - 1)
        last = self._first
        for first in range(self._first, len(self.weights)):
            while last < len(self.weights) and sums[last + 1] - sums[first] < confidence:
                last += 1
            if last == len(self.weights):
                break
            if last - first < best[1] - best[0]:
                best = (first, last)
            last = max(last, first + 1)
        return best

    def mass(self, first: int, last: int) -> float:
        """How likely the culprit is one of ``first`` to ``last``."""
        return math.fsum(self.weights[first : last + 1])


def _prefix(values: Sequence[float]) -> list[float]:
    return [0.0, *accumulate(values)]


def _xlogx(value: float) -> float:
    return value * math.log2(value) if value > 0 else 0.0


def _mean(rate: Rate) -> float:
    return rate.shown / (rate.shown + rate.not_shown)


def _log_beta(rate: Rate) -> float:
    return math.lgamma(rate.shown) + math.lgamma(rate.not_shown) - math.lgamma(rate.shown + rate.not_shown)
