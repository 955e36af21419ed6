"""Penalty terms with units: a small algebra of quantities used in a loss."""
from __future__ import annotations

import functools
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Quantity(ABC):
    unit = "1"

    @abstractmethod
    def amount(self) -> float:
        ...


class Weight(Quantity):
    def __init__(self, value: float):
        self.value = value

    def amount(self) -> float:
        return self.value

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.value + other.value)

    def __mul__(self, k: float) -> Weight:
        return Weight(self.value * k)

    __rmul__ = __mul__


class CappedWeight(Weight):
    """A weight that never exceeds its cap, also when it is added to others."""

    def __init__(self, value: float, cap: float = 1.0):
        super().__init__(min(value, cap))
        self.cap = cap

    def __add__(self, other: Weight) -> CappedWeight:
        return CappedWeight(self.value + other.value, self.cap)

    def __radd__(self, other: Weight) -> CappedWeight:
        return CappedWeight(other.value + self.value, self.cap)


class Penalty(nn.Module):
    def __init__(self, name: str, weight: Weight):
        super().__init__()
        self.name = name
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class L2(Penalty):
    def forward(self, x):
        return x.pow(2).mean()


class Smoothness(Penalty):
    def forward(self, x):
        return x.diff(dim=-1).abs().mean()


REGISTRY = {"l2": L2, "smooth": Smoothness}


class Regularizer(nn.Module):
    def __init__(self, spec: dict[str, Weight]):
        super().__init__()
        self.terms = nn.ModuleList(REGISTRY[k](k, w) for k, w in spec.items())

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.terms
        shared = left.weight + right.weight
        return (left(x) + right(x)) * shared.amount()


@functools.lru_cache(maxsize=None)
def data(rows: int, cols: int) -> Tensor:
    g = torch.Generator().manual_seed(rows * 100 + cols)
    return torch.rand(rows, cols, generator=g)


def evaluate(fn) -> list[Tensor]:
    return [fn(data(r, 5)) for r in (2, 3, 4)]


if __name__ == "__main__":
    reg = Regularizer({"l2": Weight(0.9), "smooth": CappedWeight(0.8, cap=1.0)})
    expected = evaluate(reg)
    actual = evaluate(torch.compile(reg, backend="eager", dynamic=False))
    for i, (e, a) in enumerate(zip(expected, actual)):
        print(f"batch {i}: eager={e.item():.5f} compiled={a.item():.5f}")
        assert torch.allclose(e, a), f"batch {i} differs"
