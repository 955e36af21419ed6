"""Bounds on time, recompiles and graph breaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.matching import Strictness, matches
from torchbisect.probe.judge.observation import Ending, Observation
from torchbisect.probe.judge.slowness import RUN_TIME, Bounds, find_slowness, slowdown

_CALLS = st.lists(st.floats(1e-6, 10), max_size=8).map(tuple)
_REASONS = st.lists(st.sampled_from(["size mismatch at index 0. expected 3, actual 4", "call to print"]), max_size=5)


def taking(eager: tuple[float, ...], compiled: tuple[float, ...], **more: object) -> Observation:
    return Observation(Ending("finished", call_seconds=eager), Ending("finished", call_seconds=compiled, **more))


def test_without_bounds_nothing_is_slow() -> None:
    observation = taking(
        (1.0,) * 5, (9.0,) * 5, recompiles=("why",) * 9, graph_breaks=("why",) * 9, compile_seconds=99.0
    )
    assert not Bounds()
    assert find_slowness(observation, Bounds()) is None


def test_the_first_compiled_call_is_not_timed() -> None:
    observation = taking((0.02, 0.01, 0.01), (5.0, 0.03, 0.03))
    found = find_slowness(observation, Bounds(slower_than=2))
    assert found is not None
    assert (found.kind, found.attribute, found.detail["ratio"]) == (MismatchKind.SLOW, RUN_TIME, 3.0)
    assert find_slowness(observation, Bounds(slower_than=3.5)) is None


def test_too_few_calls_give_no_slowdown() -> None:
    assert slowdown(taking((0.01,) * 2, (5.0,) * 2)) is None


def test_reasons_are_in_the_summary(shown) -> None:
    reasons = ("tensor 'x' size mismatch at index 0. expected 3,\n actual 4", "another")
    found = find_slowness(taking((), (), recompiles=reasons), Bounds(recompiles=1))
    assert found is not None
    assert "2 recompiles, more than 1: tensor 'x' size mismatch" in found.summary
    assert "\n" not in found.summary
    breaks = find_slowness(taking((), (), graph_breaks=("call to print",)), Bounds(graph_breaks=0, recompiles=0))
    assert breaks is not None
    assert not matches(breaks.signature, found.signature, Strictness.TOLERANT)
    assert matches(breaks.signature, breaks.signature, Strictness.STRICT)


@given(_CALLS, _CALLS, _REASONS, _REASONS, st.floats(0, 5), st.integers(0, 4))
def test_runs_within_their_bounds_are_not_slow(eager, compiled, recompiles, breaks, factor: float, count: int) -> None:
    observation = taking(eager, compiled, recompiles=tuple(recompiles), graph_breaks=tuple(breaks))
    found = find_slowness(observation, Bounds(factor, None, count, count))
    ratio = slowdown(observation)
    exceeded = max(len(recompiles), len(breaks)) > count or (ratio is not None and ratio > factor)
    assert (found is not None) == exceeded


@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_compile_time(seconds: float) -> None:
    found = find_slowness(taking((), (), compile_seconds=2.0), Bounds(compile_seconds=seconds))
    assert (found is not None) == (seconds < 2)
