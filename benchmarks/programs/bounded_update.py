# torch: 2.8.0
"""Projected gradient descent with optional bounds; nan stands for 'unbounded'."""
import logging
import math
import sys
from dataclasses import dataclass

import torch

logging.basicConfig(stream=sys.stdout, format="%(name)s: %(message)s", level=logging.INFO)


@dataclass
class Bounds:
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def parse(cls, text):
        def number(part):
            part = part.strip()
            return float(part) if part else math.nan
        low, _, high = text.partition(":")
        return cls(number(low), number(high))

    def describe(self):
        def show(v):
            return "free" if math.isnan(v) else f"{v:g}"
        return f"[{show(self.low)}, {show(self.high)}]"


class Problem:
    def __init__(self, n):
        k = torch.arange(1, n + 1, dtype=torch.float32)
        self.diag = 1.0 + 0.1 * k
        self.target = torch.sin(k) * 2

    def value(self, x):
        return 0.5 * (self.diag * (x - self.target) ** 2).sum()

    def grad(self, x):
        return self.diag * (x - self.target)


def project(x, bounds):
    return x.clamp(min=bounds.low)


@torch.compile(backend="aot_eager_decomp_partition", dynamic=False)
def step(x, problem, bounds, lr):
    g = problem.grad(x)
    y = project(x - lr * g, bounds)
    return y, (y - x).abs().max()


def history_line(i, value, move):
    return f"{i:3d} f={value:9.5f} move={move:.5f}"


def optimise(problem, bounds, lr=0.4, iters=6):
    log = logging.getLogger("pgd")
    x = torch.zeros_like(problem.target)
    for i in range(iters):
        x, move = step(x, problem, bounds, lr)
        if i % 3 == 2:
            log.info(history_line(i, problem.value(x).item(), move.item()))
    return x


def main():
    problem = Problem(6)
    results = {}
    for text in ("0:", "-0.5:", ":"):
        bounds = Bounds.parse(text)
        print("bounds", bounds.describe())
        results[text] = optimise(problem, bounds)
    for text, x in results.items():
        active = (x <= Bounds.parse(text).low).sum().item()
        print(f"{text!r:8} active={active} x={[round(v, 3) for v in x.tolist()]}")


if __name__ == "__main__":
    main()
