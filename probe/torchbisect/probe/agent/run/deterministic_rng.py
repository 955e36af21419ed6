"""Random numbers that hang on nothing but how many are drawn: the same for each draw, in whatever order they come.

Compiled code may leave out a draw whose result nobody uses, and up to 2.8 inductor put draws in another order than the
script, also where it is told to draw as eager does. A person who compiles expects no more. So where the runs differ and
a compiled region draws, both are run once more with such numbers: what differs no longer hung on the draws.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import warnings
import zlib
from typing import Any, Optional

import torch

_SPREAD = 43758.5453


def drawn() -> int:
    """Where torch's random numbers on the CPU have come to."""
    state = torch.default_generator.get_state()
    return zlib.crc32(ctypes.string_at(state.data_ptr(), state.numel()))


class SettledDraws:
    """From its entry on what torch draws on the CPU is settled, to the end of the process."""

    def __init__(self) -> None:
        self._library: Any = None

    def __enter__(self) -> None:
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings(), contextlib.suppress(RuntimeError):
            warnings.simplefilter("ignore")
            for name, fill in _FILLS.items():
                self._library.impl(name, fill, "CPU")

    def __exit__(self, *problem: Any) -> None:
        """Nothing: code of the script may still run at exit, and is to draw as it did."""


def _spread(like: torch.Tensor) -> torch.Tensor:
    """Numbers in (0, 1) that look random, one for each element."""
    numbers = torch.arange(1, like.numel() + 1, dtype=torch.float64)
    return ((numbers * 12.9898).sin() * _SPREAD).frac().abs().clamp(1e-6, 1 - 1e-6).reshape(like.shape)


def _uniform(own: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(_spread(own) * (high - low) + low)


def _normal(own: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_((2 * _spread(own) - 1).erfinv() * (math.sqrt(2) * std) + mean)


def _bernoulli(own: torch.Tensor, share: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(_spread(own) < share)


def _exponential(own: torch.Tensor, rate: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return own.copy_(-_spread(own).log() / rate)


def _whole(own: torch.Tensor, low: int, high: Optional[int], *, generator: Any = None) -> torch.Tensor:
    return own.copy_((_spread(own) * (max(low + 1, high or low + 2) - low)).floor() + low)


def _whole_to(own: torch.Tensor, high: int, *, generator: Any = None) -> torch.Tensor:
    return _whole(own, 0, high)


_FILLS = {
    "uniform_": _uniform,
    "normal_": _normal,
    "bernoulli_.float": _bernoulli,
    "bernoulli_.Tensor": _bernoulli,
    "exponential_": _exponential,
    "random_.from": _whole,
    "random_.to": _whole_to,
}
