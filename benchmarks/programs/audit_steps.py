# torch: 2.13.0
"""
Constrained portfolio optimisation by projected gradient, with an audit trail.

Compliance wants to know every constraint which was checked in every step.  The trail
is filled by little auditor objects that live for one step only.
"""
import datetime as dt
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Protocol, Tuple

import torch
from torch import Tensor

ASSETS = ("bonds", "stocks", "gold", "cash")
StepFn = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass
class Market:
    """Mean returns and a covariance with some structure"""

    mean: Tensor
    cov: Tensor

    @classmethod
    def random(cls, n: int) -> "Market":
        factor = torch.randn(n, 2) * 0.2
        cov = factor @ factor.T + torch.diag(torch.rand(n) * 0.05 + 0.01)
        return cls(mean=torch.rand(n) * 0.1, cov=cov)

    def utility(self, w: Tensor, risk: float) -> Tensor:
        return self.mean @ w - 0.5 * risk * (w @ self.cov @ w)


@dataclass
class Options:
    risk: float = 3.0
    rate: float = 0.3
    steps: int = 4
    cap: float = 0.6
    floor: float = 0.0
    tags: Dict[str, Any] = field(default_factory=dict)


class Constraint(Protocol):
    name: str

    def project(self, w: Tensor) -> Tensor: ...


class Box:
    name = "box"

    def __init__(self, lo: float, hi: float) -> None:
        self.lo, self.hi = lo, hi

    def project(self, w: Tensor) -> Tensor:
        return w.clamp(self.lo, self.hi)


class Budget:
    name = "budget"

    def __init__(self, total: float = 1.0) -> None:
        self.total = total

    def project(self, w: Tensor) -> Tensor:
        return w - (w.sum() - self.total) / w.shape[0]


class Turnover:
    """Not too far away from the last portfolio"""

    name = "turnover"

    def __init__(self, start: Tensor, limit: float) -> None:
        self.start = start
        self.limit = limit

    def project(self, w: Tensor) -> Tensor:
        move = w - self.start
        size = move.abs().sum()
        return self.start + move * (self.limit / size.clamp_min(self.limit))


def make_step(constraints: List[Constraint], opts: Options) -> Tuple[StepFn, List[str]]:
    """Compiled projected-gradient step, and the trail which it writes."""
    trail: List[str] = []

    class Auditor:
        def __init__(self, label: str) -> None:
            self.label = label

        def note(self, what: str) -> None:
            trail.append(f"{self.label}:{what}")

        def checked(self, c: Constraint, w: Tensor) -> Tensor:
            self.note(c.name)
            return c.project(w)

    @torch.compile(backend="eager")
    def step(w: Tensor, mean: Tensor, cov: Tensor) -> Tensor:
        auditor = Auditor("pg")
        gradient = mean - opts.risk * (cov @ w)
        w = w + opts.rate * gradient
        for c in constraints:
            w = auditor.checked(c, w)
        return w

    return step, trail


class Trail:
    def __init__(self, lines: List[str]) -> None:
        self.lines = lines

    def counts(self) -> Dict[str, int]:
        c = Counter(line.split(":", 1)[1] for line in self.lines)
        return dict(sorted(c.items()))

    def dump(self, **extra: Any) -> str:
        doc = {"day": dt.date(2026, 1, 2).isoformat(), "checks": self.counts(), **extra}
        return json.dumps(doc, sort_keys=True)


def sharpe(market: Market, w: Tensor) -> float:
    vol = math.sqrt(max(float(w @ market.cov @ w), 1e-12))
    return float(market.mean @ w) / vol


def solve(market: Market, opts: Options) -> Tuple[Tensor, Trail]:
    n = market.mean.shape[0]
    w = torch.full((n,), 1.0 / n)
    constraints: List[Constraint] = [
        Box(opts.floor, opts.cap),
        Turnover(w.clone(), 0.8),
        Budget(),
    ]
    step, lines = make_step(constraints, opts)
    best = -math.inf
    for k in range(opts.steps):
        w = step(w, market.mean, market.cov)
        value = float(market.utility(w, opts.risk))
        flag = "*" if value > best else " "
        best = max(best, value)
        print(f"{flag} step {k}: utility {value:+.5f}  sum {float(w.sum()):.3f}")
    return w, Trail(lines)


def main() -> None:
    torch.manual_seed(11)
    opts = Options(tags={"desk": "toy"})
    market = Market.random(len(ASSETS))
    w, trail = solve(market, opts)
    for name, share in zip(ASSETS, w.tolist()):
        print(f"  {name:<7}{share:7.1%}")
    print(f"sharpe {sharpe(market, w):.3f}")
    print(trail.dump(**opts.tags))
    if len(trail.lines) != 3 * opts.steps:
        raise SystemExit(f"audit trail has {len(trail.lines)} lines instead of {3 * opts.steps}")


if __name__ == "__main__":
    main()
