"""Make each random draw on the CPU give the same numbers, independent of the order and the number of draws.

Compiled code may omit a draw whose result is unused. Up to torch 2.8 inductor also reordered draws, even when told to
draw as eager does. Neither is a mismatch. If the runs differ and a compiled region draws, both are therefore repeated
with this random number generator. A difference that then disappears came from the draws.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any, Optional

import torch

_MULTIPLIER = 43758.5453


class DeterministicRandom:
    """A context that makes torch's random functions on the CPU deterministic until the end of the process."""

    def __init__(self) -> None:
        self._library: Any = None

    def __enter__(self) -> None:
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings(), contextlib.suppress(RuntimeError):
            warnings.simplefilter("ignore")
            for name, implementation in _IMPLEMENTATIONS.items():
                self._library.impl(name, implementation, "CPU")

    def __exit__(self, *error: Any) -> None:
        """Keep the implementations, because the script's exit handlers may still draw."""


def _pseudo_random(like: torch.Tensor) -> torch.Tensor:
    """Return numbers in (0, 1) that look random, one for each element."""
    numbers = torch.arange(1, like.numel() + 1, dtype=torch.float64)
    return ((numbers * 12.9898).sin() * _MULTIPLIER).frac().abs().clamp(1e-6, 1 - 1e-6).reshape(like.shape)


def _uniform(own: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(_pseudo_random(own) * (high - low) + low)


def _normal(own: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_((2 * _pseudo_random(own) - 1).erfinv() * (math.sqrt(2) * std) + mean)


def _bernoulli(own: torch.Tensor, p: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(_pseudo_random(own) < p)


def _exponential(own: torch.Tensor, rate: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(-_pseudo_random(own).log() / rate)


def _integers(own: torch.Tensor, low: int, high: Optional[int], *, generator: Any = None) -> torch.Tensor:
    return own.copy_((_pseudo_random(own) * (max(low + 1, high or low + 2) - low)).floor() + low)


def _integers_below(own: torch.Tensor, high: int, *, generator: Any = None) -> torch.Tensor:
    return _integers(own, 0, high)


_IMPLEMENTATIONS = {
    "uniform_": _uniform,
    "normal_": _normal,
    "bernoulli_.float": _bernoulli,
    "bernoulli_.Tensor": _bernoulli,
    "exponential_": _exponential,
    "random_.from": _integers,
    "random_.to": _integers_below,
}
