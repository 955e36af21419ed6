"""The numerical tolerance: equal within noise, different beyond it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torchbisect.probe.agent.compare import tolerance  # noqa: E402

lists = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=30)


@given(lists, st.floats(-4e-5, 4e-5))
def test_close_values_do_not_differ(values: list[float], relative: float) -> None:
    eager = torch.tensor(values)
    assert tolerance.floats_differ(eager, eager * (1 + relative), None, "torch.float32") is None


@given(lists, st.integers(0, 29), st.floats(0.5, 100))
def test_one_wrong_element_is_found(values: list[float], at: int, off: float) -> None:
    eager = torch.tensor(values, dtype=torch.float64)
    compiled = eager.clone()
    compiled[at % len(values)] += off * (1 + eager.abs().max())
    found = tolerance.floats_differ(eager, compiled, eager, "torch.float32")
    assert found is not None
    assert (found["position"], found["count"]) == (at % len(values), 1)


@given(lists)
def test_errors_no_larger_than_eager_errors_are_within_tolerance(values: list[float]) -> None:
    exact = torch.tensor(values, dtype=torch.float64)
    eager, compiled = exact + 0.5, exact - 0.5
    assert tolerance.floats_differ(eager, compiled, exact, "torch.float16") is None
    assert tolerance.floats_differ(eager, compiled, None, "torch.float16") is not None


def test_positions_of_nan_and_infinity_must_agree() -> None:
    nan, inf = float("nan"), float("inf")
    same = torch.tensor([nan, inf, -inf, 1.0])
    assert tolerance.floats_differ(same, same.clone(), None, "torch.float32") is None
    for other in ([0.0, inf, -inf, 1.0], [nan, -inf, -inf, 1.0], [nan, inf, -inf, nan]):
        assert tolerance.floats_differ(same, torch.tensor(other), same, "torch.float32") is not None


def test_a_small_gradient_that_became_zero_differs() -> None:
    eager = torch.full((5,), 3e-4)
    assert tolerance.floats_differ(eager, eager * 0, eager.double(), "torch.float32") is not None
