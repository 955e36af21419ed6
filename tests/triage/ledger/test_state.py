"""Transitions of a known bug, as a table and as properties of every history."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.triage.ledger.state import (
    Control,
    Edge,
    Seen,
    Sighting,
    Standing,
    State,
    aged,
    is_newer,
    needs_control,
    step,
    with_edge,
)

BUILDS = ("2.6.0", "2.7.0", "2.8.0", "2.9.0.dev20250801", "2.9.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0")
REPORTED = Standing(State.REPRODUCES, "wrong sum", "2.6.0", "2.6.0", day="2026-01-01")
FIXED = Standing(
    State.FIXED, "agrees", "2.8.0", "2.7.0", "2.8.0", Edge(BoundaryKind.FIX, "2.7.0", "2.8.0"), "2026-01-02"
)
BACK = Standing(
    State.REGRESSED, "wrong", "2.9.0", "2.9.0", "2.8.0", Edge(BoundaryKind.REGRESSION, "2.8.0", "2.9.0"), "2026-01-03"
)
NONE_SHOWN = Sighting("2.10.0", "2026-02-01", Seen.NONE, control=Control.SHOWN)


def seen(what: Seen, build: str = "2.10.0", **more: object) -> Sighting:
    return Sighting(build, "2026-02-01", what, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "sighting", "state", "edge"),
    [
        (REPORTED, seen(Seen.SAME), State.REPRODUCES, None),
        (REPORTED, seen(Seen.NONE, control=Control.SHOWN), State.FIXED, ("fix", "2.6.0", "2.10.0")),
        (REPORTED, seen(Seen.NONE), State.REPRODUCES, None),
        (REPORTED, seen(Seen.NONE, control=Control.UNTESTABLE), State.REPRODUCES, None),
        (REPORTED, seen(Seen.NONE, control=Control.NOT_SHOWN), State.UNASKABLE, None),
        (REPORTED, seen(Seen.NONE, control=Control.SHOWN, healthy=False), State.REPRODUCES, None),
        (REPORTED, seen(Seen.OTHER), State.CHANGED, None),
        (REPORTED, seen(Seen.SOME), State.FLAKY, None),
        (REPORTED, seen(Seen.UNTESTABLE), State.UNASKABLE, None),
        (REPORTED, seen(Seen.UNTESTABLE, healthy=False), State.REPRODUCES, None),
        (REPORTED, seen(Seen.SAME, "2.6.0"), State.REPRODUCES, None),
        (REPORTED, seen(Seen.NONE, "2.6.0"), State.UNASKABLE, None),
        (REPORTED, seen(Seen.SOME, "2.6.0"), State.FLAKY, None),
        (REPORTED, seen(Seen.NONE, "2.5.1", control=Control.SHOWN), State.REPRODUCES, None),
        (FIXED, seen(Seen.NONE), State.FIXED, ("fix", "2.7.0", "2.8.0")),
        (FIXED, seen(Seen.SAME), State.REGRESSED, ("regression", "2.8.0", "2.10.0")),
        (FIXED, seen(Seen.SAME, healthy=False), State.FIXED, ("fix", "2.7.0", "2.8.0")),
        (FIXED, seen(Seen.OTHER), State.CHANGED, ("fix", "2.7.0", "2.8.0")),
        (FIXED, seen(Seen.UNTESTABLE), State.UNASKABLE, ("fix", "2.7.0", "2.8.0")),
        (FIXED, seen(Seen.SAME, "2.7.0"), State.FIXED, ("fix", "2.7.0", "2.8.0")),
        (BACK, seen(Seen.SAME), State.REGRESSED, ("regression", "2.8.0", "2.9.0")),
        (BACK, seen(Seen.NONE, control=Control.SHOWN), State.FIXED, ("fix", "2.9.0", "2.10.0")),
        (BACK, seen(Seen.NONE), State.REGRESSED, ("regression", "2.8.0", "2.9.0")),
    ],
)
def test_a_transition(before: Standing, sighting: Sighting, state: State, edge: tuple[str, str, str] | None) -> None:
    after = step(before, sighting)
    assert after.state is state
    assert (after.edge and (after.edge.kind.value, after.edge.before, after.edge.after)) == edge


def test_a_bug_that_could_not_be_asked_for_a_while_is_fixed_or_back_all_the_same() -> None:
    unasked = step(FIXED, seen(Seen.UNTESTABLE, "2.9.0"))
    assert step(unasked, seen(Seen.NONE)).state is State.FIXED
    assert step(unasked, seen(Seen.SAME)).state is State.REGRESSED


sightings = st.builds(
    Sighting,
    st.sampled_from(BUILDS),
    st.just("2026-03-01"),
    st.sampled_from(Seen),
    st.booleans(),
    st.sampled_from(Control),
    st.text(max_size=3),
)
histories = st.lists(sightings, max_size=12)


def standings(history: list[Sighting]) -> list[Standing]:
    found = [REPORTED]
    for sighting in history:
        found.append(step(found[-1], sighting))
    return found


@given(histories)
def test_what_is_never_said_without_evidence(history: list[Sighting]) -> None:
    known = standings(history)
    for before, sighting, after in zip(known, history, known[1:]):
        if not sighting.healthy or is_newer(before.newest, sighting.build):
            assert after == before, "a broken build, or an older one, changed something"
        if after.state is State.FIXED and not before.is_good_now:
            assert (sighting.seen, sighting.control) == (Seen.NONE, Control.SHOWN)
        if after.state is State.REGRESSED and before.state is not State.REGRESSED:
            assert sighting.seen is Seen.SAME
        if after.state is State.FIXED:
            assert after.is_good_now
            assert after.edge is not None
            assert after.edge.kind is BoundaryKind.FIX
        if after.edge is not None:
            assert is_newer(after.edge.after, after.edge.before)
        assert not is_newer(before.newest, after.newest)


@given(histories)
def test_an_answer_that_is_counted_twice_changes_nothing_more(history: list[Sighting]) -> None:
    known = standings(history)
    for sighting, after in zip(history, known[1:]):
        if sighting.build == after.newest or sighting.seen is Seen.UNTESTABLE:
            again = step(after, sighting)
            kept = (again.last_bad, again.last_good, again.edge, again.newest)
            assert kept == (after.last_bad, after.last_good, after.edge, after.newest)


@given(histories, sightings)
def test_a_control_is_asked_for_where_it_decides(history: list[Sighting], sighting: Sighting) -> None:
    before = standings(history)[-1]
    healthy = replace(sighting, healthy=True)
    outcomes = {step(before, replace(healthy, control=control)) for control in Control}
    if len({(one.state, one.edge) for one in outcomes}) > 1:
        assert needs_control(before, sighting.seen, sighting.build)


def test_a_bug_without_evidence_is_stale_and_a_fixed_one_is_not() -> None:
    assert aged(REPORTED, "2026-01-31") == REPORTED
    assert aged(REPORTED, "2026-02-01").state is State.STALE
    assert aged(FIXED, "2027-01-01") == FIXED
    stale = aged(REPORTED, "2026-06-01")
    assert aged(stale, "2026-07-01") == stale
    assert step(stale, seen(Seen.SAME)).state is State.REPRODUCES


def test_a_narrower_edge_replaces_its_own_and_no_other() -> None:
    narrow = Edge(BoundaryKind.FIX, "2.7.0", "2.7.1", exact=True, searched=True)
    assert with_edge(FIXED, narrow).edge == narrow
    assert with_edge(BACK, narrow) == BACK
    assert with_edge(FIXED, Edge(BoundaryKind.FIX, "2.6.0", "2.8.0")) == FIXED
    assert with_edge(FIXED, narrow).words == "fixed in 2.7.1"
