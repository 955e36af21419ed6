"""The search for flaky scripts is right as often as its confidence says."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.search.flaky import find_flaky_boundaries
from torchbisect.bisect.search.posterior import GOOD_BUILD, BetaRate, Posterior
from torchbisect.bisect.search.search_options import FlakySearchOptions

#: The thorough profile has fifty times as many examples, so it makes thousands of searches.
SEARCHES = 1 * settings().max_examples


def flaky(culprit: int, bad_rate: float, good_rate: float, chance: random.Random) -> Callable[[int], BuildAnswer]:
    def ask(item: int) -> BuildAnswer:
        shows = chance.random() < (bad_rate if item >= culprit else good_rate)
        return BuildAnswer(BuildStatus.BAD if shows else BuildStatus.GOOD)

    return ask


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("known", [True, False])
def test_wrong_results_are_no_more_frequent_than_the_confidence_allows(confidence: float, known: bool) -> None:
    """The rates are drawn from the priors of the search, so its confidence must be exact."""
    chance = random.Random(f"{confidence} {known}")
    builds, measured, wrong, allowed = 12, 4, 0, 0.0
    for _ in range(SEARCHES):
        bad_rate = chance.uniform(0.2, 1.0)
        good_rate = chance.betavariate(GOOD_BUILD.shown, GOOD_BUILD.not_shown)
        culprit = chance.randrange(1, builds)
        shown = sum(chance.random() < bad_rate for _ in range(measured))
        found = find_flaky_boundaries(
            range(builds),
            flaky(culprit, bad_rate, good_rate, chance),
            FlakySearchOptions(
                bad=builds - 1,
                good=0 if known else None,
                kind=BoundaryKind.REGRESSION,
                shown=shown,
                runs=measured,
                confidence=confidence,
                limit=300,
            ),
        )
        assert found.regression is not None
        before, after = found.regression.before, found.regression.after
        assert after is not None
        wrong += not (-1 if before is None else before) < culprit <= after
        allowed += 1 - confidence
    assert wrong <= allowed + 3 * math.sqrt(allowed)


def test_a_bug_in_every_third_run_is_found_with_the_wanted_confidence() -> None:
    right = 0
    for seed in range(20):
        chance = random.Random(seed)
        ask = flaky(23, 0.35, 0.0, chance)
        found = find_flaky_boundaries(
            range(40),
            ask,
            FlakySearchOptions(bad=39, good=0, kind=BoundaryKind.REGRESSION, shown=4, runs=10, confidence=0.97),
        )
        assert found.regression is not None
        assert found.regression.confidence is not None
        assert found.regression.confidence >= 0.97
        assert len(found.tested) < 120
        right += found.regression.first_bad == 23
    assert right >= 18


@given(st.integers(2, 40), st.data())
def test_with_constant_answers_the_result_contains_the_culprit_whatever_is_untestable(
    size: int, data: st.DataObject
) -> None:
    came = data.draw(st.integers(0, size - 1))
    went = data.draw(st.integers(came + 1, size))
    bad = data.draw(st.integers(came, went - 1))
    broken = data.draw(st.sets(st.integers(0, size - 1).filter(lambda p: p != bad), max_size=size // 2))

    def ask(item: int) -> BuildAnswer:
        if item in broken:
            return BuildAnswer(BuildStatus.UNTESTABLE, "import-failed")
        return BuildAnswer(BuildStatus.BAD if came <= item < went else BuildStatus.GOOD)

    found = find_flaky_boundaries(range(size), ask, FlakySearchOptions(bad=bad, shown=20, runs=20, limit=200))
    assert found.regression is not None
    assert found.fix is not None
    regression, fix = found.regression, found.fix
    assert regression.after is not None
    assert fix.before is not None
    assert (-1 if regression.before is None else regression.before) < came <= regression.after
    assert fix.before < went <= (size if fix.after is None else fix.after)
    for boundary in (regression, fix):
        assert boundary.exact is (not boundary.open and not boundary.between)
        assert {skipped.item for skipped in boundary.between} <= broken


def test_cheaper_builds_are_preferred_if_they_are_as_informative() -> None:
    asked: list[int] = []

    def ask(item: int) -> BuildAnswer:
        asked.append(item)
        return BuildAnswer(BuildStatus.BAD if item >= 9 else BuildStatus.GOOD)

    options: FlakySearchOptions[int] = FlakySearchOptions(
        bad=15, good=0, kind=BoundaryKind.REGRESSION, shown=9, runs=10
    )
    find_flaky_boundaries(range(16), ask, replace(options, cost=lambda item: 1.0 if item in asked else 8.0))
    plain = list(asked)
    asked.clear()
    find_flaky_boundaries(range(16), ask, options)
    assert len(set(plain)) <= len(set(asked))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=12),
    st.integers(0, 9),
    st.builds(BetaRate, st.floats(0.1, 30), st.floats(0.1, 30)),
)
def test_the_posterior_and_its_expected_entropies_equal_direct_sums(
    runs: list[tuple[int, bool]], first: int, bad_rate: BetaRate
) -> None:
    posterior = Posterior(10, first, bad_rate=bad_rate)
    for position, shown in runs:
        posterior.update(position, shown)
    assert math.isclose(sum(posterior.weights), 1.0)
    expected = posterior.expected_entropies()
    for position in range(10):
        total = 0.0
        for shown in (True, False):
            after = Posterior(10, first, bad_rate=bad_rate)
            for again in (*runs, (position, shown)):
                after.update(*again)
            total += likelihood_of(posterior, runs, first, bad_rate, position, shown) * after.entropy()
        assert math.isclose(expected[position], total, rel_tol=1e-6, abs_tol=1e-9)
    low, high = posterior.credible_range(0.9)
    assert posterior.probability(low, high) >= 0.9 - 1e-9


def likelihood_of(
    posterior: Posterior, runs: list[tuple[int, bool]], first: int, bad_rate: BetaRate, position: int, shown: bool
) -> float:
    """Return the probability of this answer as a sum over the culprits."""
    total = 0.0
    for culprit in range(first, 10):
        rate = bad_rate if position >= culprit else GOOD_BUILD
        same = [seen for at, seen in runs if (at >= culprit) is (position >= culprit)]
        rate = rate.after(sum(same), len(same))
        chance = rate.shown / (rate.shown + rate.not_shown)
        total += posterior.weights[culprit] * (chance if shown else 1 - chance)
    return total


@pytest.mark.parametrize(("bad", "good"), [(9, None), (-1, None), (1, 1), (1, 5)])
def test_impossible_ends_are_rejected(bad: int, good: int | None) -> None:
    with pytest.raises(ValueError):
        find_flaky_boundaries(range(4), flaky(1, 1, 0, random.Random(0)), FlakySearchOptions(bad=bad, good=good))
