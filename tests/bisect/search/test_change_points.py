"""One large step is told from a drift of many small ones."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search.change_points import ONE_STEP, Shape, change_points, describe_change

NOISE = 0.01
SEEDS = st.integers(0, 10**6)


def measured(levels: list[float], seed: int) -> list[float]:
    chance = random.Random(seed)
    return [level * math.exp(chance.gauss(0, NOISE)) for level in levels]


@given(SEEDS, st.integers(1, 11), st.floats(1.15, 3.0), st.booleans())
def test_one_step_is_found_where_it_is(seed: int, place: int, size: float, up: bool) -> None:
    levels = [1.0] * place + [size if up else 1 / size] * (12 - place)
    found = describe_change(measured(levels, seed), NOISE)
    assert found.shape is Shape.STEP
    assert found.largest == place


@given(SEEDS, st.integers(1, 5), st.integers(6, 11), st.floats(1.4, 3.0), st.floats(0.5, 1.1))
def test_what_a_later_build_takes_back_is_another_change(
    seed: int, place: int, back: int, size: float, kept: float
) -> None:
    levels = [1.0] * place + [size] * (back - place) + [size ** (1 - kept)] * (12 - back)
    found = describe_change(measured(levels, seed), NOISE)
    assert found.shape is Shape.STEP
    assert found.largest == place
    assert ONE_STEP <= found.share <= 1


@given(SEEDS)
def test_a_drift_is_no_step(seed: int) -> None:
    found = describe_change(measured([1.04**number for number in range(12)], seed), NOISE)
    assert found.shape is Shape.DRIFT
    assert len(found.positions) > 2


def test_noise_alone_is_flat() -> None:
    shapes = [describe_change(measured([1.0] * 12, seed), NOISE).shape for seed in range(400)]
    assert shapes.count(Shape.FLAT) >= 380


def test_a_step_on_a_small_drift_is_a_step() -> None:
    levels = [1.004**number * (1.4 if number >= 7 else 1.0) for number in range(12)]
    found = describe_change(measured(levels, 3), NOISE)
    assert (found.shape, found.largest) == (Shape.STEP, 7)
    assert found.share == pytest.approx(1.0, abs=0.25)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=9), st.floats(0.05, 0.5))
def test_the_cuts_are_the_best_of_all(values: list[float], noise: float) -> None:
    """The dynamic program finds what trying all partitions finds."""

    def price(cuts: tuple[int, ...]) -> float:
        ends, total = [0, *cuts, len(values)], 0.0
        for start, end in itertools.pairwise(ends):
            part = values[start:end]
            mean = sum(part) / len(part)
            total += sum((value - mean) ** 2 for value in part) / noise**2
        return total + 4 * math.log(max(len(values), 2)) * len(cuts)

    every = [
        tuple(place for place in range(1, len(values)) if choice >> (place - 1) & 1)
        for choice in range(1 << (len(values) - 1))
    ]
    assert price(change_points(values, noise)) == pytest.approx(min(map(price, every)), abs=1e-6)


@pytest.mark.parametrize("ratios", [[1.0], [1.0, 1.0], []])
def test_too_few_builds_are_flat(ratios: list[float]) -> None:
    assert describe_change(ratios, NOISE).shape is Shape.FLAT
