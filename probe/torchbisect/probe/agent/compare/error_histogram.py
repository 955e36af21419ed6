"""Summarize the errors of a tensor for the report's charts: their sizes, and their positions in the tensor.

The summary is small whatever the size of the tensor. ``reports/render/charts.py`` draws its keys: ``histogram`` with
``edges`` and ``counts``, and ``map``, rows of numbers from 0 (equal) to 1 (the largest error).
"""

from __future__ import annotations

import math
from typing import Any, Dict, List

import torch

BARS = 10
ROWS, COLUMNS = 16, 32


def error_charts(eager: torch.Tensor, compiled: torch.Tensor, shape: List[int], step: int) -> Dict[str, Any]:
    """Return the histogram and the map of the errors between two flat tensors; empty if no error is finite.

    Args:
        eager, compiled: all recorded elements.
        shape: the shape of the whole tensor.
        step: the distance between recorded elements; a sampled tensor (``step`` above 1) has no map.
    """
    wide = torch.complex128 if eager.is_complex() else torch.float64
    a, b = eager.to(wide), compiled.to(wide)
    error = (a - b).abs()
    error[(a == b) | (a.isnan() & b.isnan())] = 0.0
    finite = error.isfinite() & (error < 1e300)
    largest = float(error[finite].max()) if bool(finite.any()) else 0.0
    if not largest > 0:
        return {}
    charts: Dict[str, Any] = {"histogram": _histogram(error[finite & (error > 0)], largest)}
    if step == 1 and error.numel() > 1:
        error = torch.where(finite, error / largest, torch.ones_like(error))
        charts["map"] = _map(error, shape)
    return charts


def _histogram(error: torch.Tensor, largest: float) -> Dict[str, Any]:
    """Count the errors in evenly spaced bars, or in logarithmic bars where they span more than two magnitudes."""
    smallest = float(error.min())
    if largest / smallest > 100:
        start, end = math.log10(smallest), math.log10(largest)
        edges = [10 ** (start + (end - start) * number / BARS) for number in range(BARS + 1)]
    else:
        edges = [largest * number / BARS for number in range(BARS + 1)]
    inner = torch.tensor(edges[1:-1], dtype=torch.float64)
    counts = torch.bincount(torch.bucketize(error, inner, right=True), minlength=BARS)
    return {"edges": [float("{:.4g}".format(edge)) for edge in edges], "counts": counts.tolist()}


def _map(error: torch.Tensor, shape: List[int]) -> List[List[float]]:
    """Return the largest error of each block of the tensor: its last dimension across, all others down."""
    columns = shape[-1] if shape else 1
    grid = error.reshape(1, 1, -1, max(columns, 1))
    size = (min(ROWS, grid.shape[2]), min(COLUMNS, grid.shape[3]))
    blocks = torch.nn.functional.adaptive_max_pool2d(grid, size)[0, 0]
    return [[round(value, 3) for value in row] for row in blocks.tolist()]
