"""Decide from interleaved runs of two builds if one is worse than the other by a ratio, with a stated error rate.

Both builds are run in turns, A B B A A B, and each pair gives one ratio, B over A. What slows the machine for minutes
slows both runs of a pair, so it cancels in the ratio. A pair counts for what its ratio is: above the threshold, or
below it. No outlier, however far off, counts for more than one pair, and no shape of the noise is assumed.

If B is not worse than the threshold, at most half of the pairs lie above it in the long run. The evidence against
that is a likelihood ratio: the pairs' probability under all larger shares, averaged, over that under one half. It is
a test martingale, so it exceeds 1 / error with a probability of at most ``error``, however often one looks (Ville's
inequality). That is what lets the test stop at the first clear answer, and go on where the answer is near.

Only the standard library is used. NumPy and SciPy have the bootstrap, and neither has a test of this kind. As
dependencies of a tool that is installed beside any torch, they would bring a NumPy 2 that torch before 2.3 cannot use.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from torchbisect.core.text_enum import TextEnum

#: The probability at most that the answer of one build is wrong.
ERROR = 0.01
#: The pairs after which a build that gave no clear answer is given up.
MOST_PAIRS = 60
#: The same two figures for a candidate of the minimizer. If a worse one is rejected, the script stays a little larger.
CANDIDATE_REJECTING_ERROR = 0.1
CANDIDATE_MOST_PAIRS = 24
#: The share of the bootstrap's medians inside of a reported interval.
COVERAGE = 0.95


class Decision(TextEnum):
    """The state of a test: ``MORE`` asks for another pair, ``UNDECIDED`` has used up all of them."""

    WORSE = "worse"
    NOT_WORSE = "not-worse"
    MORE = "more"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class PairedTest:
    """A sequential test of a ratio against a threshold.

    Nine pairs on one side are clear; a single pair never is:

    >>> PairedTest(1.2).decide([1.5] * 9), PairedTest(1.2).decide([1.0] * 9), PairedTest(1.2).decide([1.5])
    (<Decision.WORSE: 'worse'>, <Decision.NOT_WORSE: 'not-worse'>, <Decision.MORE: 'more'>)

    Attributes:
        threshold: the ratio from which on the second build is worse.
        error: the probability at most of a wrong answer, for each of the two answers.
        most: the pairs after which the test ends without an answer.
        rejecting_error: another such probability for ``not worse``, where a wrong one costs little.
    """

    threshold: float
    error: float = ERROR
    most: int = MOST_PAIRS
    rejecting_error: float | None = None

    def decide(self, ratios: Sequence[float]) -> Decision:
        """Return the first clear answer that the pairs give, in their order."""
        above = below = 0
        rejecting_error = self.error if self.rejecting_error is None else self.rejecting_error
        for number, ratio in enumerate(ratios[: self.most], 1):
            above += ratio > self.threshold
            below += ratio < self.threshold
            if evidence(above, number) * self.error >= 1:
                return Decision.WORSE
            if evidence(below, number) * rejecting_error >= 1:
                return Decision.NOT_WORSE
        return Decision.MORE if len(ratios) < self.most else Decision.UNDECIDED


@functools.cache
def evidence(hits: int, pairs: int) -> float:
    """Return the likelihood ratio of a share above one half, uniform between one half and one, to one half itself.

    The integral has a closed form in binomial coefficients:

    >>> evidence(0, 0), round(evidence(9, 9), 1), evidence(5, 10) < 1
    (1.0, 102.3, True)
    """
    tail = sum(math.comb(pairs + 1, count) for count in range(hits + 1))
    return tail / ((pairs + 1) * math.comb(pairs, hits))


@dataclass(frozen=True)
class Ratio:
    """The median of the pairs' ratios, with the ends of its bootstrap interval.

    The ratio of each pair is taken before the median, because the machine may drift from one pair to the next.
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float], *, coverage: float = COVERAGE) -> Ratio:
        """Return the ratio of some pairs, at least one.

        The bootstrap's distribution of a median is known in closed form (Efron 1979), so nothing is drawn: the median
        of a resample is at most the k-th value if at least half of its draws are.
        """
        values, count = sorted(ratios), len(ratios)
        tail = (1 - coverage) / 2
        low = next(k for k in range(1, count + 1) if _at_least((count + 1) // 2, count, k / count) > tail)
        high = next(k for k in range(1, count + 1) if _at_least(count // 2 + 1, count, k / count) >= 1 - tail)
        return cls(statistics.median(values), values[low - 1], values[high - 1])

    @property
    def words(self) -> str:
        """The ratio and its interval, for a reader."""
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def ratio_of(value: float, reference: float) -> float:
    """Return a number over that of the reference build; infinite if only the reference is zero, 1 if both are."""
    if reference == 0:
        return 1.0 if value == 0 else math.inf
    return value / reference


def decide_exact(ratio: float, threshold: float) -> Decision:
    """Return the answer of numbers without noise: worse from the threshold on."""
    return Decision.WORSE if ratio >= threshold else Decision.NOT_WORSE


def _at_least(hits: int, draws: int, share: float) -> float:
    """Return the probability of at least ``hits`` among ``draws``, each of which hits with probability ``share``."""
    return math.fsum(
        math.comb(draws, count) * share**count * (1 - share) ** (draws - count) for count in range(hits, draws + 1)
    )
