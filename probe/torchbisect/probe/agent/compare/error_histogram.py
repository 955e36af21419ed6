"""For the report's page: how far wrong values are off, and where in the tensor. Small whatever the tensor's size.

The keys are those that ``reports/render/charts.py`` draws,
``histogram`` with its ``edges`` and ``counts``, and ``map``,
rows of numbers from 0 (right) to 1 (as wrong as the worst).
"""

from __future__ import annotations

import math
from typing import Any, Dict, List

import torch

BARS = 10
ROWS, COLUMNS = 16, 32


def picture(eager: torch.Tensor, compiled: torch.Tensor, shape: List[int], step: int) -> Dict[str, Any]:
    """The two pictures of two flat tensors, or nothing where no finite difference can be drawn.

    Args:
        eager: all recorded elements.
        compiled: as many.
        shape: the tensor's.
        step: how far apart the recorded elements lie; a tensor of samples has no map.
    """
    wide = torch.complex128 if eager.is_complex() else torch.float64
    a, b = eager.to(wide), compiled.to(wide)
    far = (a - b).abs()
    far[(a == b) | (a.isnan() & b.isnan())] = 0.0
    known = far.isfinite() & (far < 1e300)
    worst = float(far[known].max()) if bool(known.any()) else 0.0
    if not worst > 0:
        return {}
    found: Dict[str, Any] = {"histogram": _histogram(far[known & (far > 0)], worst)}
    if step == 1 and far.numel() > 1:
        far = torch.where(known, far / worst, torch.ones_like(far))
        found["map"] = _map(far, shape)
    return found


def _histogram(far: torch.Tensor, worst: float) -> Dict[str, Any]:
    """Evenly spaced bars, or bars a power apart where the smallest and the largest are far from one another."""
    least = float(far.min())
    if worst / least > 100:
        start, end = math.log10(least), math.log10(worst)
        edges = [10 ** (start + (end - start) * number / BARS) for number in range(BARS + 1)]
    else:
        edges = [worst * number / BARS for number in range(BARS + 1)]
    inner = torch.tensor(edges[1:-1], dtype=torch.float64)
    counts = torch.bincount(torch.bucketize(far, inner, right=True), minlength=BARS)
    return {"edges": [float("{:.4g}".format(edge)) for edge in edges], "counts": counts.tolist()}


def _map(far: torch.Tensor, shape: List[int]) -> List[List[float]]:
    """The worst of each block of the tensor: its last dimension across, all others down."""
    columns = shape[-1] if shape else 1
    grid = far.reshape(1, 1, -1, max(columns, 1))
    size = (min(ROWS, grid.shape[2]), min(COLUMNS, grid.shape[3]))
    blocks = torch.nn.functional.adaptive_max_pool2d(grid, size)[0, 0]
    return [[round(value, 3) for value in row] for row in blocks.tolist()]
