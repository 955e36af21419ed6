"""Two builds are compared by counts, by numbers that never change, and by numbers with noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.core.errors import InputError
from torchbisect.probe.measure.comparison import Comparison, MeasuredAnswer, Pair, Reading
from torchbisect.probe.measure.measure import NAMES, Measure

TIME, KERNELS, SPEED = Measure("time"), Measure("kernel-count"), Measure("speed", True)
NAMES_OF_BUILDS = ("2.1.0", "2.2.0")


def noisy(name: str, ratio: float, noise: float, seed: int = 0) -> Callable[[int], Pair]:
    chance = random.Random(seed)

    def run() -> float:
        return math.exp(chance.gauss(0, noise))

    return lambda number: Pair(Reading({name: run()}), Reading({name: ratio * run()}))


def test_a_count_takes_one_run() -> None:
    asked = []

    def pair(number: int) -> Pair:
        asked.append(number)
        return Pair(Reading({"kernel-count": 3.0}), Reading({"kernel-count": 7.0}))

    found = Comparison(KERNELS, 1.2, pair).decide(NAMES_OF_BUILDS)
    assert (found.answer, asked, found.exact) == (MeasuredAnswer.WORSE, [0], True)
    assert found.detail == "kernel-count: 7 where torch 2.1.0 has 3"


def test_a_count_that_was_zero_is_worse() -> None:
    pair = Pair(Reading({"graph-breaks": 0.0}), Reading({"graph-breaks": 1.0}))
    found = Comparison(Measure("graph-breaks"), 1.2, lambda _: pair).decide(NAMES_OF_BUILDS)
    assert (found.answer, found.ratio) == (MeasuredAnswer.WORSE, math.inf)


def test_the_counts_are_said_with_a_time() -> None:
    measured = noisy("time", 1.5, 0.02)

    def pair(number: int) -> Pair:
        found = measured(number)
        return Pair(
            Reading({**found.reference.values, "kernel-count": 3.0}),
            Reading({**found.asked.values, "kernel-count": 7.0}),
        )

    found = Comparison(TIME, 1.2, pair).decide(NAMES_OF_BUILDS)
    assert found.answer is MeasuredAnswer.WORSE
    assert found.counts == {"kernel-count": (3.0, 7.0)}
    assert found.detail.endswith("; kernel-count 7 where it has 3")
    assert found.low is not None
    assert found.ratio is not None
    assert 1.2 < found.low <= found.ratio
    assert found.pairs >= 9


def test_numbers_that_never_change_take_three_pairs() -> None:
    found = Comparison(SPEED, 0.8, lambda _: _speeds(100.0, 70.0)).decide(NAMES_OF_BUILDS)
    assert (found.answer, found.pairs, found.exact, found.ratio) == (MeasuredAnswer.WORSE, 3, True, 0.7)


def test_a_candidates_numbers_are_exact_after_one_pair_that_repeats_the_first() -> None:
    found = Comparison(SPEED, 0.8, lambda _: _speeds(100.0, 70.0), candidate=True).decide(NAMES_OF_BUILDS)
    assert (found.answer, found.pairs, found.exact) == (MeasuredAnswer.WORSE, 1, True)
    measured = noisy("time", 1.5, 0.02)
    noisy_one = Comparison(TIME, 1.2, measured, candidate=True).decide(NAMES_OF_BUILDS)
    assert (noisy_one.answer, noisy_one.exact) == (MeasuredAnswer.WORSE, False)
    assert noisy_one.pairs >= 9, "an answer that keeps a candidate is as sure as any"


def test_a_candidate_that_is_not_worse_takes_fewer_pairs() -> None:
    pairs = [
        Comparison(TIME, 1.2, noisy("time", 1.0, 0.01), candidate=candidate).decide(NAMES_OF_BUILDS).pairs
        for candidate in (False, True)
    ]
    assert pairs == [9, 5]


def test_the_longest_run_is_told() -> None:
    pair = Pair(Reading({"kernel-count": 3.0}, seconds=2.0), Reading({"kernel-count": 7.0}, seconds=5.0))
    assert Comparison(KERNELS, 1.2, lambda _: pair).decide(NAMES_OF_BUILDS).seconds == 5.0


def _speeds(reference: float, asked: float) -> Pair:
    return Pair(Reading({SPEED.text: reference}), Reading({SPEED.text: asked}))


@given(st.integers(0, 10**6), st.sampled_from([(0.6, "worse"), (1.0, "not-worse"), (1.4, "not-worse")]))
def test_a_number_that_should_be_high_is_worse_where_it_falls(seed: int, case: tuple[float, str]) -> None:
    ratio, answer = case
    found = Comparison(SPEED, 0.8, noisy(SPEED.text, ratio, 0.02, seed)).decide(NAMES_OF_BUILDS)
    assert str(found.answer) == answer


@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.9, 1.0, 1.05, 1.4, 3.0]))
def test_the_answer_is_on_the_right_side(seed: int, ratio: float) -> None:
    found = Comparison(TIME, 1.2, noisy("time", ratio, 0.03, seed)).decide(NAMES_OF_BUILDS)
    assert (found.answer is MeasuredAnswer.WORSE) == (ratio > 1.2)


def test_too_much_noise_is_said() -> None:
    found = Comparison(TIME, 1.05, noisy("time", 1.0, 1.0)).decide(NAMES_OF_BUILDS)
    assert (found.answer, found.reason, found.pairs) == (MeasuredAnswer.UNTESTABLE, "too-close", 60)


@pytest.mark.parametrize(
    ("pair", "reason", "words"),
    [
        (
            Pair(Reading({"time": 1.0}), Reading(failure="fails", detail="the script ended")),
            "fails",
            "torch 2.2.0: the",
        ),
        (Pair(Reading(failure="timed-out", detail="long"), Reading({"time": 1.0})), "timed-out-on-reference", "2.1.0"),
        (Pair(Reading({"time": 1.0}), Reading({})), "not-measured", "there is no time"),
        (
            Pair(Reading({"time": 1.0}, "calls"), Reading({"time": 1.0}, "script")),
            "measured-differently",
            "timed calls",
        ),
        (Pair(Reading({"time": 1.0}), Reading({"time": math.nan})), "not-measured", "nan"),
    ],
)
def test_a_run_that_shows_nothing_is_no_evidence(pair: Pair, reason: str, words: str) -> None:
    found = Comparison(TIME, 1.2, lambda _: pair).decide(NAMES_OF_BUILDS)
    assert (found.answer, found.reason) == (MeasuredAnswer.UNTESTABLE, reason)
    assert words in found.detail


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_is_read_back(name: str) -> None:
    assert Measure.parsed(name).text == name


@pytest.mark.parametrize("text", ["", "speed", "metric:", "metric:a b", "metric:1st", "TIME"])
def test_another_word_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="metric:NAME"):
        Measure.parsed(text)


@given(st.floats(-1e12, 1e12), st.sampled_from(["{}={}", "{} = {}", "  {}: {}", "x=1\n{}={}\nlast"]))
def test_a_printed_number_is_read(value: float, form: str) -> None:
    output = f"speed=7\n{form.format('speed', repr(value))}\nspeedy=8\nspeed=fast\n"
    assert SPEED.read_printed(output) == value
