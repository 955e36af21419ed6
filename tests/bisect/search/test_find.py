"""The search against random truths: the answer always holds what was there, and never claims more than was seen."""

from __future__ import annotations

import doctest
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search import find as find_module
from torchbisect.bisect.search.boundary_search import BoundarySearch
from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus, SearchResult
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.options import SearchOptions

G, B, U = BuildStatus.GOOD, BuildStatus.BAD, BuildStatus.UNTESTABLE


def ask(truth: list[BuildStatus]) -> Callable[[int], BuildAnswer]:
    return lambda item: BuildAnswer(truth[item], "import-failed" if truth[item] is U else None)


@dataclass
class Case:
    """A list of builds in which the bug came once and went at most once."""

    truth: list[BuildStatus]
    bad: int
    came: int
    went: int

    def bound(self, boundaries: int, untestable: int) -> int:
        """Per edge: the growing steps, the halving with one question to spare, two more for each untestable build."""
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


@given(cases(), st.integers(1, 5), st.integers(0, 2**32), st.integers(1, 7))
def test_both_edges_of_any_truth_lie_inside_the_answer(case: Case, jobs: int, seed: int, first_step: int) -> None:
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
    assert found.monotone
    asked = [tested.item for tested in found.tested]
    assert len(set(asked)) == len(asked)


@given(cases())
def test_what_lies_between_was_never_seen_to_be_good_or_bad(case: Case) -> None:
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
def test_the_questions_stay_within_the_bound(case: Case) -> None:
    found = find_boundaries(range(len(case.truth)), ask(case.truth), SearchOptions(bad=case.bad))
    in_vain = sum(tested.status is U for tested in found.tested)
    assert len(found.tested) <= case.bound(2, in_vain)


@given(st.integers(2, 400), st.data(), st.booleans())
def test_between_two_known_ends_the_halving_costs_log2_and_one_more_for_fixed_or_cached_midpoints(
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
def test_the_same_few_builds_are_met_whatever_the_bounds(size: int, start: int, data: st.DataObject) -> None:
    """Two searches for one culprit over two windows of one line of dates: nearly all that the second asks is cached."""
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
def test_any_truth_at_all_gives_edges_that_are_really_there(truth: list[BuildStatus], data: st.DataObject) -> None:
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
    assert found.monotone is ("".join(s[0] for s in changes) in ("", "g", "b", "gb", "bg", "gbg"))
    assert found.monotone or "changes more often" in found.notices[-1]


@given(cases(), st.integers(2, 6))
def test_several_at_once_ask_no_more_rounds_and_find_the_same(case: Case, jobs: int) -> None:
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
def test_what_may_come_next_is_known_before_the_answer(case: Case) -> None:
    search: BoundarySearch[int] = BoundarySearch(range(len(case.truth)), SearchOptions(bad=case.bad))
    foretold: tuple[int, ...] | None = None
    while questions := search.next():
        question = questions[0]
        assert foretold is None or question.item in foretold
        foretold = search.likely()
        assert len(foretold) <= 2
        assert question.item not in foretold
        finding = ask(case.truth)(question.item)
        search.answer(question, finding)
        if finding.status is U:
            foretold = None


@given(cases(), st.data())
def test_a_search_that_was_killed_goes_on_and_asks_nothing_twice(case: Case, data: st.DataObject) -> None:
    """Also when by then other builds are cached than the first time."""
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


def test_already_bad_in_the_oldest_and_not_fixed_in_the_newest_are_answers() -> None:
    found = find_boundaries("abcdef", lambda _: BuildAnswer(B), SearchOptions(bad=3))
    assert found.regression is not None
    assert found.fix is not None
    assert (found.regression.before, found.regression.after) == (None, "a")
    assert (found.fix.before, found.fix.after) == ("f", None)
    assert found.regression.sentence == "Already bad in a, the oldest build that could be tested."
    assert found.fix.sentence == "Still bad in f, the newest build that could be tested."


def test_a_typed_end_that_is_untestable_slides_and_says_so() -> None:
    truth = [G, U, G, G, B, U, B, B]
    found = find_boundaries(range(8), ask(truth), SearchOptions(good=1, bad=5, kind=BoundaryKind.REGRESSION))
    assert found.regression is not None
    assert (found.regression.last_good, found.regression.first_bad) == (3, 4)
    assert found.notices == (
        "5, given as bad, can't be tested (import-failed): 6 was taken in its place",
        "1, given as good, can't be tested (import-failed)",
    )


def test_a_good_end_that_is_bad_is_not_believed() -> None:
    found = find_boundaries(
        range(16), ask([G] * 3 + [B] * 13), SearchOptions(good=8, bad=15, kind=BoundaryKind.REGRESSION)
    )
    assert found.regression is not None
    assert found.regression.first_bad == 3
    assert found.notices == ("8 was given as good and is bad",)


def test_with_no_end_known_the_newest_stretch_of_bad_builds_is_found() -> None:
    found = find_boundaries(range(40), ask([G] * 4 + [B] * 30 + [G] * 6))
    assert found.regression is not None
    assert found.fix is not None
    assert (found.regression.first_bad, found.fix.first_fixed) == (4, 34)


def test_nothing_bad_anywhere_is_said() -> None:
    found = find_boundaries(range(20), ask([G] * 20))
    assert (found.regression, found.fix) == (None, None)
    assert found.notices == ("the mismatch was not seen in any build that was tested",)


def test_a_bug_that_came_went_and_came_again_is_noticed() -> None:
    truth = [G, B, B, B, G, G, G, B, B, G, G, G]
    found = find_boundaries(range(12), ask(truth), SearchOptions(bad=8, good=0))
    assert found.regression is not None
    assert truth[found.regression.before or 0] is G
    looked = find_boundaries(range(12), ask(truth), SearchOptions(bad=2, good=6))
    assert looked.fix is not None
    assert looked.fix.after == 4
    all_asked = find_boundaries(range(12), ask(truth), SearchOptions(bad=8, good=11, first_step=3))
    assert not all_asked.monotone or all_asked.notices == ()


def test_last_good_is_asked_again_after_first_bad() -> None:
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
def test_with_several_jobs_too_only_the_ends_are_asked_again(case: Case, jobs: int) -> None:
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


def test_a_last_good_that_fails_the_second_time_is_not_called_good() -> None:
    """As a thin install does that misleads: what the whole one says is believed, and the search goes on from there."""
    thin = [G] * 6 + [B] * 4
    whole = [G] * 3 + [B] * 7
    found = find_boundaries(
        range(10),
        ask(thin),
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


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(find_module).attempted
    assert not doctest.testmod(find_module).failed


def test_ends_that_cannot_be_are_refused() -> None:
    for bad, good, kind in [
        (9, None, BoundaryKind.BOTH),
        (1, 1, BoundaryKind.BOTH),
        (1, 2, BoundaryKind.REGRESSION),
        (2, 1, BoundaryKind.FIX),
    ]:
        with pytest.raises(ValueError):
            BoundarySearch(range(4), SearchOptions(bad=bad, good=good, kind=kind))
