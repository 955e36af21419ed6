"""The paired test is wrong no more often than it claims, on noise that drifts, has heavy tails and outliers."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.probe.measure.paired_test import (
    CANDIDATE_MOST_PAIRS,
    CANDIDATE_REJECTING_ERROR,
    ERROR,
    Decision,
    PairedTest,
    Ratio,
    decide_exact,
    evidence,
    ratio_of,
)

#: The thorough profile has fifty times as many examples.
SEARCHES = 5 * settings().max_examples
NOISES = ("quiet", "normal", "heavy tails", "outliers", "drift", "load that comes and goes")


class Machine:
    """A machine whose runs take one second, times the build's ratio, times noise of a named kind."""

    def __init__(self, kind: str, chance: random.Random) -> None:
        self.kind, self.chance = kind, chance
        self.speed = 1.0
        self.loaded = False

    def run(self, ratio: float) -> float:
        chance, noise = self.chance, 1.0
        if self.kind == "quiet":
            noise = math.exp(chance.gauss(0, 0.01))
        elif self.kind == "normal":
            noise = math.exp(chance.gauss(0, 0.05))
        elif self.kind == "heavy tails":
            noise = 1 + 0.03 * chance.paretovariate(1.1)  # its variance is infinite
        elif self.kind == "outliers":
            noise = math.exp(chance.gauss(0, 0.03)) * (chance.uniform(5, 50) if chance.random() < 0.15 else 1)
        elif self.kind == "drift":
            self.speed *= math.exp(chance.gauss(0.02, 0.03))  # ever slower, by 2% a run
            noise = self.speed
        else:
            self.loaded ^= chance.random() < 0.1
            noise = math.exp(chance.gauss(0, 0.03)) * (2.0 if self.loaded else 1.0)
        return ratio * noise

    def pair(self, ratio: float) -> float:
        """Run both builds, in a random order, and return the ratio of the second build to the first."""
        if self.chance.random() < 0.5:
            reference = self.run(1.0)
            return self.run(ratio) / reference
        value = self.run(ratio)
        return value / self.run(1.0)


def answer(test: PairedTest, machine: Machine, ratio: float) -> tuple[Decision, list[float]]:
    ratios: list[float] = []
    while (decision := test.decide(ratios)) is Decision.MORE:
        ratios.append(machine.pair(ratio))
    return decision, ratios


def most_wrong(searches: int, error: float) -> float:
    """The count of wrong answers that a rate of ``error`` exceeds once in ten thousand times."""
    return searches * error + 4 * math.sqrt(searches * error * (1 - error)) + 1


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("error", [0.01, 0.1])
def test_a_build_at_the_threshold_is_called_worse_no_more_often_than_claimed(kind: str, error: float) -> None:
    """The hardest case: the build's ratio is the threshold, so that each pair lies on either side as often."""
    chance = random.Random(f"{kind} {error}")
    answers = [answer(PairedTest(1.2, error), Machine(kind, chance), 1.2)[0] for _ in range(SEARCHES)]
    assert answers.count(Decision.WORSE) <= most_wrong(SEARCHES, error)
    assert answers.count(Decision.NOT_WORSE) <= most_wrong(SEARCHES, error)


@pytest.mark.parametrize("kind", NOISES)
def test_a_build_against_itself_is_never_worse(kind: str) -> None:
    """Equal, or refused where the noise is larger than the effect: the second is for the worst noise only."""
    chance = random.Random(kind)
    answers = [answer(PairedTest(1.2), Machine(kind, chance), 1.0)[0] for _ in range(SEARCHES)]
    assert Decision.WORSE not in answers
    assert answers.count(Decision.UNDECIDED) <= (0 if kind in ("quiet", "normal") else SEARCHES / 20)


@pytest.mark.parametrize("kind", NOISES)
def test_a_clear_slowdown_is_missed_no_more_often_than_claimed(kind: str) -> None:
    chance = random.Random(kind)
    answers = [answer(PairedTest(1.2), Machine(kind, chance), 1.45)[0] for _ in range(SEARCHES)]
    assert answers.count(Decision.NOT_WORSE) <= most_wrong(SEARCHES, ERROR)
    assert answers.count(Decision.WORSE) >= 0.95 * SEARCHES


def test_the_answer_takes_more_pairs_near_the_threshold() -> None:
    chance = random.Random(0)
    pairs = {
        ratio: statistics.mean(len(answer(PairedTest(1.2), Machine("normal", chance), ratio)[1]) for _ in range(60))
        for ratio in (1.0, 1.15, 1.2, 1.25, 1.6)
    }
    assert pairs[1.0] < 10 < pairs[1.15] < pairs[1.2]
    assert pairs[1.6] < 10 < pairs[1.25] < pairs[1.2]


def test_noise_larger_than_the_effect_gives_no_answer() -> None:
    """Runs that differ by a factor of three can't tell a tenth: most tests end undecided, and none is wrong."""
    chance = random.Random(1)
    ends = []
    for _ in range(100):
        ratios = [math.exp(chance.gauss(0, 1)) for _ in range(60)]
        ends.append(PairedTest(1.1).decide(ratios))
    assert ends.count(Decision.UNDECIDED) > 80
    assert ends.count(Decision.WORSE) <= most_wrong(100, ERROR)


@given(st.integers(0, 60), st.integers(1, 60))
def test_the_evidence_is_a_test_martingale(hits: int, pairs: int) -> None:
    """Its mean after one more pair that lies on either side as often is what it was: Ville's inequality needs that."""
    hits = min(hits, pairs)
    after = (evidence(hits + 1, pairs + 1) + evidence(hits, pairs + 1)) / 2
    assert after == pytest.approx(evidence(hits, pairs), rel=1e-9)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=60), st.floats(0.01, 100))
def test_a_ratio_scales_with_its_pairs(ratios: list[float], factor: float) -> None:
    first, second = Ratio.of(ratios), Ratio.of([ratio * factor for ratio in ratios])
    assert first.low <= first.value <= first.high
    assert (second.low, second.value, second.high) == pytest.approx(
        (first.low * factor, first.value * factor, first.high * factor)
    )


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=25))
def test_the_interval_is_that_of_the_bootstrap(ratios: list[float]) -> None:
    """The closed form gives what drawing gives, up to one value more or less."""
    chance, values = random.Random(0), sorted(ratios)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(800))
    found = Ratio.of(ratios)
    for end, place in ((found.low, 20), (found.high, 779)):
        low = medians[max(0, place - 20)]
        high = medians[min(799, place + 20)]
        beside = [value for value in values if low <= value <= high] or values
        at = values.index(end)
        assert values.index(beside[0]) - 1 <= at <= values.index(beside[-1]) + 1


@pytest.mark.parametrize("kind", NOISES)
def test_the_interval_holds_the_ratio_as_often_as_it_says(kind: str) -> None:
    """The bootstrap of a median is a little too narrow with few pairs, so 90% of the intervals are asked for."""
    chance, searches = random.Random(kind), SEARCHES
    inside = 0
    for _ in range(searches):
        machine = Machine(kind, chance)
        found = Ratio.of([machine.pair(1.3) for _ in range(15)])
        inside += found.low <= 1.3 <= found.high
    assert inside >= 0.9 * searches - 2 * math.sqrt(0.09 * searches)


@given(st.lists(st.floats(0.5, 2.0), max_size=80))
def test_a_clear_answer_stays(ratios: list[float]) -> None:
    """Later pairs do not change what the first ones decide: an interrupted search gives the same answer."""
    test = PairedTest(1.1, 0.05)
    decisions = [test.decide(ratios[:count]) for count in range(len(ratios) + 1)]
    clear = [decision for decision in decisions if decision in (Decision.WORSE, Decision.NOT_WORSE)]
    assert len(set(clear)) <= 1
    assert not clear or decisions[-1] is clear[0]


@pytest.mark.parametrize("kind", NOISES)
def test_a_candidate_is_kept_in_error_as_seldom_as_ever(kind: str) -> None:
    """Only the rejections are allowed more errors, and no more than they say."""
    chance, searches = random.Random(kind), SEARCHES
    test = PairedTest(1.2, ERROR, CANDIDATE_MOST_PAIRS, CANDIDATE_REJECTING_ERROR)
    found = {1.2: Counter[Decision](), 1.4: Counter[Decision]()}
    for ratio, decisions in found.items():
        for _ in range(searches):
            machine = Machine(kind, chance)
            decisions[test.decide([machine.pair(ratio) for _ in range(CANDIDATE_MOST_PAIRS)])] += 1
    for wrong, error in (
        (found[1.2][Decision.WORSE], ERROR),
        (found[1.4][Decision.NOT_WORSE], CANDIDATE_REJECTING_ERROR),
    ):
        assert wrong <= error * searches + 3 * math.sqrt(error * searches) + 1
    assert test.decide([1.0] * 5) is Decision.NOT_WORSE


def test_exact_numbers() -> None:
    assert decide_exact(ratio_of(7, 3), 1.3) is Decision.WORSE
    assert decide_exact(ratio_of(3, 3), 1.3) is Decision.NOT_WORSE
    assert decide_exact(ratio_of(1, 0), 1.3) is Decision.WORSE
    assert decide_exact(ratio_of(0, 0), 1.3) is Decision.NOT_WORSE
