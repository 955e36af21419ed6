"""The charts of wrong values are small, can be drawn, and show the positions and sizes of the errors."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.probe.agent.compare.error_histogram import COLUMNS, ROWS, error_charts
from torchbisect.reports.render.charts import heat, histogram

pytestmark = pytest.mark.torch

shapes = st.lists(st.integers(1, 40), max_size=3).filter(lambda shape: math.prod(shape) <= 4000)
dtypes = st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64])


@given(shapes, dtypes, st.integers(0, 2**31), st.sampled_from([0.0, math.inf, math.nan]))
def test_every_chart_is_small_and_can_be_drawn(shape: list[int], dtype: torch.dtype, seed: int, odd: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    eager = (torch.rand(math.prod(shape), generator=generator) * 9).to(dtype)
    compiled = (torch.rand(math.prod(shape), generator=generator) * 9).to(dtype)
    if dtype.is_floating_point:
        compiled[0] = odd
    found = error_charts(eager, compiled, shape, 1)
    assert len(json.dumps(found, allow_nan=False)) < 8000
    if not found:
        return
    differing = (eager != compiled) & ~(eager.isnan() & compiled.isnan())
    finite = int((differing & (eager.to(torch.complex128) - compiled.to(torch.complex128)).isfinite()).sum())
    assert sum(found["histogram"]["counts"]) == finite
    assert len(histogram(found)) == (len(found["histogram"]["counts"]) if finite > 1 else 0)
    if "map" in found:
        rows = found["map"]
        assert len(rows) <= ROWS
        assert len(rows[0]) <= COLUMNS
        assert max(max(row) for row in rows) == 1
        assert len(heat(found)) == len(rows) * len(rows[0])


def test_charts_show_position_and_size_of_errors() -> None:
    eager = torch.zeros(4, 6)
    compiled = eager.clone()
    compiled[1, 2], compiled[3, 5] = 0.5, 1.0
    found = error_charts(eager.reshape(-1), compiled.reshape(-1), [4, 6], 1)
    assert [(r, c, v) for r, row in enumerate(found["map"]) for c, v in enumerate(row) if v] == [(1, 2, 0.5), (3, 5, 1)]
    assert sum(found["histogram"]["counts"]) == 2
    assert found["histogram"]["counts"][-1] == 1


def test_one_wrong_element_of_a_large_tensor_is_shown() -> None:
    compiled = torch.zeros(1000, 1000)
    compiled[777, 3] = 2.0
    found = error_charts(torch.zeros(10**6), compiled.reshape(-1), [1000, 1000], 1)
    assert sum(value for row in found["map"] for value in row) == 1


def test_sampled_tensors_have_no_map() -> None:
    assert "map" not in error_charts(torch.zeros(8), torch.ones(8), [80], 11)


def test_errors_of_different_magnitudes_get_logarithmic_bars() -> None:
    far = torch.tensor([1e-6, 1e-4, 1e-2, 1.0], dtype=torch.float64)
    found = error_charts(torch.zeros(4, dtype=torch.float64), far, [4], 1)["histogram"]
    assert sum(1 for count in found["counts"] if count) == 4
