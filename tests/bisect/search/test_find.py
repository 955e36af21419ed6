"""The search over random truths: its result contains the boundaries and claims no more than it saw."""

from __future__ import annotations

import doctest
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search import find as find_module
from torchbisect.bisect.search.boundary_search import BoundarySearch
from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus, SearchResult
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions

G, B, U = BuildStatus.GOOD, BuildStatus.BAD, BuildStatus.UNTESTABLE


def ask(truth: list[BuildStatus]) -> Callable[[int], BuildAnswer]:
    return lambda item: BuildAnswer(truth[item], "import-failed" if truth[item] is U else None)


@dataclass
class Case:
    """A list of builds; the bug comes once and goes once at most."""

    truth: list[BuildStatus]
    bad: int
    came: int
    went: int

    def bound(self, boundaries: int, untestable: int) -> int:
        """Return the most questions: steps and halving for each boundary, and three for each untestable build."""
        steps = len(self.truth).bit_length()
        return 1 + boundaries * (2 * steps + 2) + 3 * untestable


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(1, 70))
    came = draw(st.integers(0, size - 1))
    went = draw(st.integers(came + 1, size))
    truth = [B if came <= i < went else G for i in range(size)]
    bad = draw(st.integers(came, went - 1))
    for position in draw(st.sets(st.integers(0, size - 1), max_size=draw(st.sampled_from([0, 3, 40])))):
        if position != bad:
            truth[position] = U
    return Case(truth, bad, came, went)


def between(found: SearchResult[int], side: str) -> list[int]:
    boundary = getattr(found, side)
    return [skipped.item for skipped in boundary.between]


def is_monotone(found: SearchResult[int]) -> bool:
    """Return true if the result has no notice of more than one change each way."""
    return not any("changes more often" in notice for notice in found.notices)


@given(cases(), st.integers(1, 5), st.integers(0, 2**32), st.integers(1, 7))
def test_the_result_contains_both_boundaries_for_any_truth(case: Case, jobs: int, seed: int, first_step: int) -> None:
    shuffled = random.Random(seed)
    hot = {i for i in range(len(case.truth)) if shuffled.random() < 0.2}
    found = find_boundaries(
        range(len(case.truth)),
        ask(case.truth),
        SearchOptions(bad=case.bad, cached=hot.__contains__, first_step=first_step),
        jobs=jobs if jobs < 3 else 1,
    )
    regression, fix = found.regression, found.fix
    assert regression is not None
    assert fix is not None
    before, after = regression.before, regression.after
    assert after is not None
    assert case.truth[after] is B
    if before is None:
        assert between(found, "regression") == list(range(after))
    else:
        assert case.truth[before] is G
        assert before < case.came <= after
        assert between(found, "regression") == list(range(before + 1, after))
    before, after = fix.before, fix.after
    assert before is not None
    assert case.truth[before] is B
    if after is None:
        assert between(found, "fix") == list(range(before + 1, len(case.truth)))
    else:
        assert case.truth[after] is G
        assert before < case.went <= after
        assert between(found, "fix") == list(range(before + 1, after))
    assert is_monotone(found)
    asked = [tested.item for tested in found.tested]
    assert len(set(asked)) == len(asked)


@given(cases())
def test_builds_between_the_ends_have_no_good_or_bad_answer(case: Case) -> None:
    found = find_boundaries(range(len(case.truth)), ask(case.truth), SearchOptions(bad=case.bad))
    seen = {tested.item: tested for tested in found.tested}
    for boundary in (found.regression, found.fix):
        assert boundary is not None
        assert boundary.exact is (not boundary.open and not boundary.between)
        for skipped in boundary.between:
            asked = seen.get(skipped.item)
            assert (asked is None) is skipped.reason.startswith("not asked")
            assert asked is None or (asked.status is U and asked.reason == skipped.reason)


@given(cases())
def test_the_number_of_questions_is_bounded(case: Case) -> None:
    found = find_boundaries(range(len(case.truth)), ask(case.truth), SearchOptions(bad=case.bad))
    in_vain = sum(tested.status is U for tested in found.tested)
    assert len(found.tested) <= case.bound(2, in_vain)


@given(st.integers(2, 400), st.data(), st.booleans())
def test_between_known_ends_the_search_needs_at_most_one_question_above_binary_search(
    size: int, data: st.DataObject, caching: bool
) -> None:
    came = data.draw(st.integers(1, size - 1))
    truth = [G] * came + [B] * (size - came)
    hot = data.draw(st.sets(st.integers(0, size - 1), max_size=20)) if caching else set()
    found = find_boundaries(
        range(size),
        ask(truth),
        SearchOptions(good=0, bad=size - 1, kind=BoundaryKind.REGRESSION, cached=hot.__contains__),
    )
    assert found.regression is not None
    assert found.regression.first_bad == came
    assert len(found.tested) <= 2 + (size - 2).bit_length() + 1


@given(st.integers(20, 120), st.integers(2, 1999), st.data())
def test_searches_over_overlapping_ranges_ask_the_same_builds(size: int, start: int, data: st.DataObject) -> None:
    """Search for one culprit in two overlapping windows; nearly all questions of the second are in the cache."""
    culprit = data.draw(st.integers(start + 8, start + size - 8))

    def asked(low: int, high: int) -> set[int]:
        dates = list(range(low, high))
        found = find_boundaries(
            dates,
            lambda date: BuildAnswer(B if date >= culprit else G),
            SearchOptions(good=0, bad=len(dates) - 1, kind=BoundaryKind.REGRESSION, rank=lambda date: date),
        )
        return {tested.item for tested in found.tested[2:]}

    first = asked(start, start + size)
    second = asked(start + data.draw(st.integers(0, 3)), start + size - data.draw(st.integers(0, 3)))
    assert len(second - first) <= 2


@given(st.lists(st.sampled_from([G, B, U]), min_size=1, max_size=60), st.data())
def test_every_reported_boundary_is_real_even_if_the_truth_is_not_monotone(
    truth: list[BuildStatus], data: st.DataObject
) -> None:
    size = len(truth)
    bad = data.draw(st.none() | st.integers(0, size - 1))
    good = data.draw(st.none() | st.integers(0, size - 1).filter(lambda g: g != bad))
    kind = data.draw(st.sampled_from(list(BoundaryKind)))
    if bad is not None and good is not None and kind is not BoundaryKind.BOTH:
        kind = BoundaryKind.REGRESSION if good < bad else BoundaryKind.FIX
    found = find_boundaries(range(size), ask(truth), SearchOptions(bad=bad, good=good, kind=kind))
    for boundary in (found.regression, found.fix):
        if boundary is None:
            continue
        for end, status in (
            (boundary.last_good, G),
            (boundary.first_bad, B),
            (boundary.last_bad, B),
            (boundary.first_fixed, G),
        ):
            assert end is None or truth[end] is status
        assert all(truth[s.item] is U for s in boundary.between if not s.reason.startswith("not asked"))
        assert boundary.sentence
    if found.regression is None and found.fix is None:
        assert all(tested.status is not B for tested in found.tested) or good is not None
        assert found.notices
    statuses = [s for _, s in sorted((t.item, t.status.value) for t in found.tested if t.status is not U)]
    changes = [s for i, s in enumerate(statuses) if i == 0 or statuses[i - 1] != s]
    assert is_monotone(found) is ("".join(s[0] for s in changes) in ("", "g", "b", "gb", "bg", "gbg"))
    assert is_monotone(found) or "changes more often" in found.notices[-1]


@given(cases(), st.integers(2, 6))
def test_concurrent_questions_need_no_more_rounds_and_find_the_same(case: Case, jobs: int) -> None:
    """All questions of a round are answered together, as on ``jobs`` equal machines."""
    search: BoundarySearch[int] = BoundarySearch(
        range(len(case.truth)), SearchOptions(bad=case.bad, kind=BoundaryKind.REGRESSION)
    )
    rounds = 0
    while questions := search.next(jobs):
        rounds += 1
        for question in questions:
            search.answer(question, ask(case.truth)(question.item))
    alone = find_boundaries(
        range(len(case.truth)), ask(case.truth), SearchOptions(bad=case.bad, kind=BoundaryKind.REGRESSION)
    )
    together = search.result().regression
    assert together is not None
    assert alone.regression is not None
    assert rounds <= len(alone.tested)
    if not any(status is U for status in case.truth):
        assert (together.before, together.after) == (alone.regression.before, alone.regression.after)


@given(cases())
def test_the_next_question_is_among_the_predicted_ones(case: Case) -> None:
    search: BoundarySearch[int] = BoundarySearch(range(len(case.truth)), SearchOptions(bad=case.bad))
    foretold: tuple[int, ...] | None = None
    while questions := search.next():
        question = questions[0]
        assert foretold is None or question.item in foretold
        foretold = search.likely()
        assert len(foretold) <= 2
        assert question.item not in foretold
        answer = ask(case.truth)(question.item)
        search.answer(question, answer)
        if answer.status is U:
            foretold = None


@given(cases(), st.data())
def test_an_interrupted_search_continues_and_asks_nothing_twice(case: Case, data: st.DataObject) -> None:
    """This holds even if other builds are cached than the first time."""
    whole = find_boundaries(range(len(case.truth)), ask(case.truth), SearchOptions(bad=case.bad))
    kept = {tested.item: BuildAnswer(tested.status, tested.reason) for tested in whole.tested}
    for item in list(kept)[data.draw(st.integers(0, len(kept))) :]:
        del kept[item]
    asked: list[int] = []

    def rest(item: int) -> BuildAnswer:
        asked.append(item)
        return ask(case.truth)(item)

    hot = data.draw(st.sets(st.integers(0, len(case.truth) - 1)))
    again = find_boundaries(
        range(len(case.truth)), rest, SearchOptions(bad=case.bad, cached=hot.__contains__), known=kept.get
    )
    assert not set(asked) & set(kept)
    assert len(kept) < len(whole.tested) or not asked
    if U not in case.truth:
        assert again.regression is not None
        assert again.fix is not None
        assert whole.regression is not None
        assert whole.fix is not None
        assert (again.regression.before, again.regression.after) == (whole.regression.before, whole.regression.after)
        assert (again.fix.before, again.fix.after) == (whole.fix.before, whole.fix.after)


def test_open_ends_are_results() -> None:
    found = find_boundaries("abcdef", lambda _: BuildAnswer(B), SearchOptions(bad=3))
    assert found.regression is not None
    assert found.fix is not None
    assert (found.regression.before, found.regression.after) == (None, "a")
    assert (found.fix.before, found.fix.after) == ("f", None)
    assert found.regression.sentence == "Already bad in a, the oldest build that could be tested."
    assert found.fix.sentence == "Still bad in f, the newest build that could be tested."


def test_an_untestable_end_is_replaced_by_a_neighbor_with_a_notice() -> None:
    named = SearchOptions(good=1, bad=5, kind=BoundaryKind.REGRESSION)
    found = find_boundaries(range(8), ask([G, U, B, B, B, U, B, B]), named)
    assert found.regression is not None
    assert (found.regression.last_good, found.regression.first_bad) == (0, 2)
    assert found.notices == ("1, given as good, can't be tested (import-failed)",)
    found = find_boundaries(range(8), ask([G, U, G, G, G, U, B, B]), named)
    assert found.regression is not None
    assert (found.regression.last_good, found.regression.first_bad) == (4, 6)
    assert found.notices == ("5, given as bad, can't be tested (import-failed): 6 was taken in its place",)


@given(st.integers(2, 400), st.data())
def test_a_named_end_is_asked_only_beside_the_boundary(size: int, data: st.DataObject) -> None:
    came = data.draw(st.integers(1, size - 1))
    truth = [G] * came + [B] * (size - came)
    options, ends = SearchOptions(good=0, bad=size - 1, kind=BoundaryKind.REGRESSION), {0, size - 1}
    believed = {tested.item for tested in find_boundaries(range(size), ask(truth), options).tested}
    assert believed & ends == {came - 1, came} & ends
    found = find_boundaries(range(size), ask(truth), replace(options, ends_first=True))
    assert [tested.item for tested in found.tested[:2]] == [size - 1, 0]
    assert {tested.item for tested in found.tested} - ends == believed - ends


def test_a_named_good_end_that_is_bad_is_reported() -> None:
    found = find_boundaries(
        range(16), ask([G] * 3 + [B] * 13), SearchOptions(good=8, bad=15, kind=BoundaryKind.REGRESSION)
    )
    assert found.regression is not None
    assert found.regression.first_bad == 3
    assert found.notices == ("8 was given as good and is bad",)


def test_without_a_known_end_the_newest_run_of_bad_builds_is_found() -> None:
    found = find_boundaries(range(40), ask([G] * 4 + [B] * 30 + [G] * 6))
    assert found.regression is not None
    assert found.fix is not None
    assert (found.regression.first_bad, found.fix.first_fixed) == (4, 34)


def test_a_search_without_a_bad_build_has_a_notice() -> None:
    found = find_boundaries(range(20), ask([G] * 20))
    assert (found.regression, found.fix) == (None, None)
    assert found.notices == ("the mismatch was not seen in any build that was tested",)


def test_a_bug_that_came_twice_is_reported() -> None:
    truth = [G, B, B, B, G, G, G, B, B, G, G, G]
    found = find_boundaries(range(12), ask(truth), SearchOptions(bad=8, good=0))
    assert found.regression is not None
    assert truth[found.regression.before or 0] is G
    looked = find_boundaries(range(12), ask(truth), SearchOptions(bad=2, good=6))
    assert looked.fix is not None
    assert looked.fix.after == 4
    all_asked = find_boundaries(range(12), ask(truth), SearchOptions(bad=8, good=11, first_step=3))
    assert not is_monotone(all_asked) or all_asked.notices == ()


def test_the_last_good_build_is_asked_again_at_the_end() -> None:
    order: list[tuple[str, int]] = []

    def first(item: int) -> BuildAnswer:
        order.append(("first", item))
        return BuildAnswer(B if item >= 5 else G)

    def again(item: int) -> BuildAnswer:
        order.append(("again", item))
        return BuildAnswer(B if item >= 5 else G)

    found = find_boundaries(
        range(9), first, SearchOptions(good=0, bad=8, kind=BoundaryKind.REGRESSION, recheck="good"), ask_again=again
    )
    assert found.regression is not None
    assert found.regression.confirmed is True
    assert order[-1] == ("again", 4)
    assert [tested.recheck for tested in found.tested][-2:] == [False, True]


@given(cases(), st.integers(2, 6))
def test_concurrent_searches_ask_only_the_ends_again(case: Case, jobs: int) -> None:
    search: BoundarySearch[int] = BoundarySearch(range(len(case.truth)), SearchOptions(bad=case.bad, recheck="both"))
    while questions := search.next(jobs):
        for question in questions:
            search.answer(question, ask(case.truth)(question.item))
    found = search.result()
    assert found.regression is not None
    assert found.fix is not None
    ends = {found.regression.before, found.regression.after, found.fix.before, found.fix.after} - {None}
    assert {tested.item for tested in found.tested if tested.recheck} == ends
    assert {found.regression.confirmed, found.fix.confirmed} <= {True, None}


def test_the_second_answer_of_an_end_counts() -> None:
    """A partial wheel may mislead: the answer of the whole install counts, and the search goes on."""
    partial = [G] * 6 + [B] * 4
    whole = [G] * 3 + [B] * 7
    found = find_boundaries(
        range(10),
        ask(partial),
        SearchOptions(good=0, bad=9, kind=BoundaryKind.REGRESSION, recheck="both"),
        ask_again=ask(whole),
    )
    assert found.regression is not None
    assert whole[found.regression.before or 0] is G
    assert "5 was good at first and bad when asked again" in found.notices


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_error_ends_the_search_and_is_passed_on(jobs: int) -> None:
    def full(item: int) -> BuildAnswer:
        if item == 4:
            raise OSError("no space left")
        return BuildAnswer(B)

    with pytest.raises(OSError, match="no space left"):
        find_boundaries(range(9), full, SearchOptions(bad=8, first_step=4), jobs=jobs)


def test_the_examples_in_the_docstrings_are_true() -> None:
    assert doctest.testmod(find_module).attempted
    assert not doctest.testmod(find_module).failed


def test_impossible_ends_are_rejected() -> None:
    for bad, good, kind in [
        (9, None, BoundaryKind.BOTH),
        (1, 1, BoundaryKind.BOTH),
        (1, 2, BoundaryKind.REGRESSION),
        (2, 1, BoundaryKind.FIX),
    ]:
        with pytest.raises(ValueError):
            BoundarySearch(range(4), SearchOptions(bad=bad, good=good, kind=kind))
