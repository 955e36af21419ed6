"""The posterior over the culprits of a flaky mismatch, and the expected information of each question.

Every build before the culprit shows the mismatch in a share ``g`` of its runs (nearly never), and every build from the
culprit on in a share ``b``. Neither share is known. Both are integrated out under Beta priors, so the posterior is
exact for the answers so far, whatever was asked and whenever the search stops (the model of hauntsaninja/git_bayesect).
Each update takes time linear in the number of builds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class BetaRate:
    """A Beta distribution of how often a build shows the mismatch, as counts of imagined or measured runs."""

    shown: float
    not_shown: float

    def after(self, shown: int, runs: int) -> BetaRate:
        """Return the distribution after ``runs`` more runs, of which ``shown`` showed the mismatch."""
        return BetaRate(self.shown + shown, self.not_shown + runs - shown)


#: Prior of a build without the bug: a mismatch with the same signature by chance is rare.
GOOD_BUILD = BetaRate(0.5, 30.0)
#: Prior of a build with the bug before any measurement.
UNKNOWN = BetaRate(1.0, 1.0)


class Posterior:
    """The posterior over the culprits 0 to ``size`` - 1. The culprit is the first build with the bug.

    ``weights`` has the probability of each culprit.

    Args:
        size: the number of builds.
        first: the first build that may be the culprit; above 0 if the build before it is known to be good.
        good_rate: the prior of how often a build without the bug shows the mismatch.
        bad_rate: the prior of how often a build with the bug shows it.
    """

    def __init__(
        self, size: int, first: int = 0, good_rate: BetaRate = GOOD_BUILD, bad_rate: BetaRate = UNKNOWN
    ) -> None:
        self._shown = [0] * size
        self._not_shown = [0] * size
        self._first = first
        self._good_rate, self._bad_rate = good_rate, bad_rate
        self._recompute()

    def update(self, position: int, shown: bool) -> None:
        """Update with one run of a build."""
        (self._shown if shown else self._not_shown)[position] += 1
        self._recompute()

    def _recompute(self) -> None:
        size = len(self._shown)
        before_shown = [0, *accumulate(self._shown)]
        before_not = [0, *accumulate(self._not_shown)]
        logs: list[float] = []
        self._mean_rates: list[tuple[float, float]] = []
        for culprit in range(self._first, size):
            good = BetaRate(
                self._good_rate.shown + before_shown[culprit], self._good_rate.not_shown + before_not[culprit]
            )
            bad = BetaRate(
                self._bad_rate.shown + before_shown[size] - before_shown[culprit],
                self._bad_rate.not_shown + before_not[size] - before_not[culprit],
            )
            logs.append(_log_beta(good) + _log_beta(bad))
            self._mean_rates.append((_mean(good), _mean(bad)))
        highest = max(logs)
        weights = [math.exp(log - highest) for log in logs]
        total = math.fsum(weights)
        self.weights: list[float] = [0.0] * self._first + [weight / total for weight in weights]

    def expected_entropies(self) -> list[float]:
        """Return for each build the expected entropy of the posterior, in bits, after one more run of that build.

        A run of build ``i`` multiplies the weight of culprit ``c`` by the probability of its outcome: that of a good
        build if ``i`` is before ``c``, else that of a bad build. So the sums of all builds are prefix and suffix sums.
        """
        weights = self.weights[self._first :]
        expected = [0.0] * len(self._shown)
        for seen in (True, False):
            good = [w * (g if seen else 1 - g) for w, (g, _) in zip(weights, self._mean_rates)]
            bad = [w * (b if seen else 1 - b) for w, (_, b) in zip(weights, self._mean_rates)]
            bad_sum, bad_log = _prefix(bad), _prefix([_xlogx(v) for v in bad])
            good_sum, good_log = _prefix(good), _prefix([_xlogx(v) for v in good])
            for position in range(len(expected)):
                # Culprits up to ``position`` make that build a bad one, later culprits a good one.
                split = max(0, position - self._first + 1)
                likelihood = bad_sum[split] + good_sum[-1] - good_sum[split]
                logs = bad_log[split] + good_log[-1] - good_log[split]
                if likelihood > 0:
                    expected[position] += likelihood * math.log2(likelihood) - logs
        return expected

    def entropy(self) -> float:
        """Return the entropy of the posterior, in bits."""
        return -math.fsum(_xlogx(weight) for weight in self.weights)

    def mean_bad_rate(self) -> float:
        """Return the mean of how often a build with the bug shows the mismatch."""
        return math.fsum(w * b for w, (_, b) in zip(self.weights[self._first :], self._mean_rates))

    def credible_range(self, confidence: float) -> tuple[int, int]:
        """Return the first and the last culprit of the shortest range with this probability."""
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

    def probability(self, first: int, last: int) -> float:
        """Return the probability that the culprit is one of ``first`` to ``last``."""
        return math.fsum(self.weights[first : last + 1])


def _prefix(values: Sequence[float]) -> list[float]:
    return [0.0, *accumulate(values)]


def _xlogx(value: float) -> float:
    return value * math.log2(value) if value > 0 else 0.0


def _mean(rate: BetaRate) -> float:
    return rate.shown / (rate.shown + rate.not_shown)


def _log_beta(rate: BetaRate) -> float:
    return math.lgamma(rate.shown) + math.lgamma(rate.not_shown) - math.lgamma(rate.shown + rate.not_shown)
