"""Decide if two floating-point results differ, by a re-implementation of PyTorch's own rule.

The rule in ``torch/_dynamo/utils.py::same`` is part of the torch under test and changes with it. A search over builds
needs a fixed rule. In short: values that are close by ``allclose`` with a tolerance of 1e-4 are equal. Otherwise the
error of the compiled run against a double-precision run is measured. It may be as large as the eager error times a
multiplier, plus a tenth of the tolerance. The multiplier is 3 for half precision and for fewer than a thousand
elements, else 2, and larger for very small tensors.

There is one deliberate change. The absolute part of the tolerance shrinks for tensors whose values are all small, down
to a tenth. Otherwise a gradient of 1e-5 that became 0 would be within tolerance.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

import torch

TOLERANCE = 1e-4
NAN_TOLERANCE = 4e-2
SMALLEST_SCALE = 0.1
_HALF = ("torch.float16", "torch.bfloat16")


def multiplier(dtype: str, numel: int) -> float:
    """Return the factor by which the compiled error may exceed the eager error."""
    if numel <= 10:
        return 10.0
    if numel <= 500:
        return 8.0
    return 3.0 if dtype in _HALF or numel < 1000 else 2.0


def _to_float64(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor).reshape(-1)
    return tensor.to(torch.float64)


def _rms(tensor: torch.Tensor) -> float:
    return float(tensor.square().mean().sqrt()) if tensor.numel() else 0.0


def floats_differ(
    eager: torch.Tensor, compiled: torch.Tensor, reference: Optional[torch.Tensor], dtype: str
) -> Optional[Dict[str, Any]]:
    """Compare the elements of two results of one floating-point or complex dtype.

    Args:
        eager, compiled: flat tensors of the same length.
        reference: the same elements from the double-precision run, or ``None``.
        dtype: the name of the dtype in the script.

    Returns:
        ``None`` if they agree. Otherwise ``position`` of the largest difference, ``count`` of elements out of
        tolerance, ``largest`` difference, and with a reference ``error``, ``eager_error`` and ``bound``.
    """
    doubled = 2 if eager.is_complex() else 1
    a, b = _to_float64(eager), _to_float64(compiled)
    r = None
    if reference is not None and reference.numel() == eager.numel() and reference.is_complex() == eager.is_complex():
        r = _to_float64(reference)
    scale = min(1.0, max(SMALLEST_SCALE, _rms(torch.nan_to_num(a, 0.0, 0.0, 0.0))))
    difference = (a - b).abs()
    difference[(a == b) | (a.isnan() & b.isnan())] = 0.0
    difference[difference.isnan()] = math.inf
    far = difference > TOLERANCE * scale + TOLERANCE * torch.nan_to_num(a.abs(), 0.0, 0.0, 0.0)
    if r is not None:
        # An intermediate result overflowed or was divided by zero in the eager run only.
        far &= ~(a.isnan() & ~b.isnan() & ~r.isnan() & ((b - r).abs() <= NAN_TOLERANCE))
    if not bool(far.any()):
        return None
    found: Dict[str, Any] = {
        "position": int(torch.where(far, difference, torch.full_like(difference, -1.0)).argmax()) // doubled,
        "count": int(far.sum()),
        "largest": float(difference[far].max()),
    }
    if r is None:
        return found
    finite = a.isfinite() & b.isfinite() & r.isfinite()
    if bool((far & ~finite).any()):
        return found
    error, eager_error = _rms((r - b)[finite]), _rms((r - a)[finite])
    bound = multiplier(dtype, eager.numel()) * eager_error + TOLERANCE / 10 * scale
    if error <= bound:
        return None
    return {**found, "error": error, "eager_error": eager_error, "bound": bound}


def numbers_differ(eager: float, compiled: float, reference: Optional[float]) -> bool:
    """Apply the same rule to two Python numbers, which are assumed to come from single precision."""
    wide = torch.float64
    third = None if reference is None else torch.tensor([reference], dtype=wide)
    first, second = torch.tensor([eager], dtype=wide), torch.tensor([compiled], dtype=wide)
    return floats_differ(first, second, third, "torch.float32") is not None


def exact_differ(eager: torch.Tensor, compiled: torch.Tensor) -> Optional[Dict[str, Any]]:
    """Compare integers or bools, which must be equal; return the same figures as ``floats_differ``, or ``None``."""
    unequal = eager != compiled
    if not bool(unequal.any()):
        return None
    gap = (eager.to(torch.float64) - compiled.to(torch.float64)).abs()
    return {"position": int(unequal.to(torch.uint8).argmax()), "count": int(unequal.sum()), "largest": float(gap.max())}


def unravel_index(position: int, shape: List[int]) -> List[int]:
    """Return the index in a tensor of the given shape for a position in the flat tensor."""
    index = []
    for size in reversed(shape):
        index.append(position % max(size, 1))
        position //= max(size, 1)
    return index[::-1]
