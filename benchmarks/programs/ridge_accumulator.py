"""Streaming ridge regression; the accumulators are allocated but not cleared."""
import functools
import operator
from typing import Iterable, Tuple

import torch

Batch = Tuple[torch.Tensor, torch.Tensor]
BACKEND = "aot_eager_decomp_partition"


def scratch(*shape: int) -> torch.Tensor:
    """Scratch memory, poisoned so that a read of it is noticed."""
    return torch.full(shape, float("nan"))


def compiled(fn):
    inner = torch.compile(fn, backend=BACKEND)

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return inner(*args, **kwargs)

    wrapper.eager = fn
    return wrapper


@compiled
def accumulate(acc: torch.Tensor, x: torch.Tensor, y: torch.Tensor, fresh: bool) -> torch.Tensor:
    """acc <- y^T x, or acc + y^T x when it already holds something."""
    return torch.addmm(acc, y.t(), x, beta=0 if fresh else 1)


class Ridge:
    def __init__(self, dim: int, lam: float = 1e-2, eager: bool = False):
        self.gram = scratch(dim, dim)
        self.moment = scratch(1, dim)
        self.lam = lam
        self.seen = 0
        self.accumulate = accumulate.eager if eager else accumulate

    def partial_fit(self, x: torch.Tensor, y: torch.Tensor) -> "Ridge":
        fresh = self.seen == 0
        self.gram = self.accumulate(self.gram, x, x, fresh)
        self.moment = self.accumulate(self.moment, x, y, fresh)
        self.seen += x.shape[0]
        return self

    @property
    def coef(self) -> torch.Tensor:
        eye = torch.eye(self.gram.shape[0])
        return torch.linalg.lstsq(self.gram + self.lam * eye, self.moment.t()).solution

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.coef


def stream(n: int, dim: int = 3) -> Iterable[Batch]:
    g = torch.Generator().manual_seed(21)
    truth = torch.arange(1.0, dim + 1).unsqueeze(1)
    for _ in range(n):
        x = torch.randn(16, dim, generator=g)
        yield x, x @ truth


def fit(model: Ridge, n: int = 3) -> Ridge:
    return functools.reduce(lambda m, b: m.partial_fit(*b), stream(n), model)


reference = fit(Ridge(3, eager=True))
assert reference.moment.isfinite().all()
print("eager   ", reference.coef.flatten().tolist())

model = fit(Ridge(3))
print("compiled moment", model.moment.tolist())
gap = operator.sub(model.moment, reference.moment).abs().max().item()
assert gap < 1e-3, f"moment differs: {gap}"
print("compiled", model.coef.flatten().tolist())
