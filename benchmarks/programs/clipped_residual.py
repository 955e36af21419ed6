"""Residual blocks with an in-place custom autograd function."""
from typing import Any, Tuple

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx


class InplaceScale(torch.autograd.Function):
    """x <- k * x without a copy; returns its very input."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, k: float) -> Tensor:
        ctx.k = k
        ctx.mark_dirty(x)
        x.mul_(k)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None]:
        return grad * ctx.k, None


class MemoryLedger:
    """Counts how many separate activations a block keeps."""

    def __init__(self):
        self.entries = 0

    def add(self, n: int) -> None:
        self.entries += n


def distinct(*tensors: Tensor) -> int:
    kept = []
    for t in tensors:
        if not any(t is k for k in kept):
            kept.append(t)
    return len(kept)


class Block(nn.Module):
    def __init__(self, dim: int, k: float = 0.5):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.k = k

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        h = self.fc(x)
        scaled = InplaceScale.apply(h, self.k)
        return x + torch.relu(scaled), distinct(h, scaled)


class Stack(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        kept = 0
        for block in self.blocks:
            x, n = block(x)
            kept += n
        return x, kept


def grads(model: nn.Module, fn, x: Tensor, ledger: MemoryLedger):
    model.zero_grad()
    y, kept = fn(x)
    ledger.add(kept)
    y.pow(2).mean().backward()
    return {n: p.grad.clone() for n, p in model.named_parameters()}


def main(depth: int = 2) -> None:
    torch.manual_seed(8)
    model = Stack(4, depth)
    x = torch.randn(3, 4)

    eager, compiled = MemoryLedger(), MemoryLedger()
    g0 = grads(model, model, x, eager)
    g1 = grads(model, torch.compile(model, backend="eager"), x, compiled)
    for name in g0:
        torch.testing.assert_close(g0[name], g1[name])
    print("gradients agree; activations kept:", eager.entries, compiled.entries)
    assert eager.entries == depth
    assert compiled.entries == depth, "in-place function returned another tensor"


if __name__ == "__main__":
    main()
