# torch: 2.13.0
"""Root finding and fitting with solvers written as generators.

A solver yields its iterates (so that the caller may plot or stop) and *returns* a
status when it is done; `drive` picks that up, PEP 380 style.
"""
from __future__ import annotations

import functools
import logging
import math
import sys
from abc import ABC
from dataclasses import dataclass
from typing import Any, Callable, Generator, Generic, Iterable, List, Optional, TypeVar

import torch
from torch import Tensor

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("newton")

S = TypeVar("S")
Run = Generator[Tensor, None, "Status"]
SOLVERS: dict[str, Callable[..., Run]] = {}


@dataclass(frozen=True)
class Status:
    method: str
    iterations: int
    reason: str = "budget"

    def __str__(self) -> str:
        return f"{self.method} stopped after {self.iterations} ({self.reason})"


def solver(fn: Callable[..., Run]) -> Callable[..., Run]:
    SOLVERS[fn.__name__] = fn
    return fn


class Problem(ABC):
    """f: R^n -> R^n, with Jacobian by hand"""

    name = "?"
    dim = 2

    def value(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def jac(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def start(self) -> Tensor:
        return torch.ones(self.dim, dtype=torch.float64)


class CircleLine(Problem):
    """x^2 + y^2 = 4, x = y"""

    name = "circle"

    def value(self, x):
        return torch.stack([x[0] ** 2 + x[1] ** 2 - 4, x[0] - x[1]])

    def jac(self, x):
        one = torch.ones((), dtype=x.dtype)
        return torch.stack([torch.stack([2 * x[0], 2 * x[1]]), torch.stack([one, -one])])


class Exponential(Problem):
    """exp(x) + y = 2, y = x / 2"""

    name = "exp"

    def value(self, x):
        return torch.stack([x[0].exp() + x[1] - 2, x[1] - x[0] / 2])

    def jac(self, x):
        one = torch.ones((), dtype=x.dtype)
        return torch.stack([torch.stack([x[0].exp(), one]), torch.stack([-one / 2, one])])


def solve2(a: Tensor, b: Tensor) -> Tensor:
    """Cramer's rule; two unknowns aren't worth LAPACK"""
    det = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    x = (b[0] * a[1, 1] - a[0, 1] * b[1]) / det
    y = (a[0, 0] * b[1] - b[0] * a[1, 0]) / det
    return torch.stack([x, y])


@solver
def newton(problem: Problem, x: Tensor, budget: int) -> Run:
    for _ in range(budget):
        x = x - solve2(problem.jac(x), problem.value(x))
        yield x
    return Status("newton", budget)


@solver
def damped(problem: Problem, x: Tensor, budget: int, factor: float = 0.7) -> Run:
    done = 0
    while done < budget:
        x = x - factor * solve2(problem.jac(x), problem.value(x))
        done += 1
        yield x
    return Status("damped", done)


class History(Generic[S]):
    def __init__(self) -> None:
        self.items: List[S] = []
        self.status: Optional[Any] = None

    def push(self, item: S) -> None:
        self.items.append(item)

    def last(self) -> S:
        return self.items[-1]

    def __len__(self) -> int:
        return len(self.items)


class Bench:
    def __init__(self, problems: Iterable[Problem], budget: int = 4) -> None:
        self.problems = list(problems)
        self.budget = budget

    @functools.lru_cache(maxsize=None)
    def launcher(self, method: str) -> Callable[[Problem, Tensor], Run]:
        fn = SOLVERS[method]
        budget = self.budget

        @torch.compile(backend="eager")
        def launch(problem: Problem, x: Tensor) -> Run:
            # scale the start a bit, it must not be the solution
            x = x * 1.25
            return fn(problem, x, budget)

        return launch

    def drive(self, method: str, problem: Problem) -> History[Tensor]:
        hist: History[Tensor] = History()

        def pump() -> Generator[Tensor, None, None]:
            hist.status = yield from self.launcher(method)(problem, problem.start())

        for x in pump():
            hist.push(x)
        return hist

    def residual(self, problem: Problem, x: Tensor) -> float:
        return problem.value(x).norm().item()

    def rate(self, problem: Problem, hist: History[Tensor]) -> float:
        """Mean number of digits won per iteration"""
        first = self.residual(problem, hist.items[0])
        last = max(self.residual(problem, hist.last()), 1e-16)
        return (math.log10(max(first, 1e-16)) - math.log10(last)) / max(1, len(hist) - 1)

    def run(self) -> None:
        for problem in self.problems:
            for method in SOLVERS:
                hist = self.drive(method, problem)
                x = ", ".join(f"{v:.6f}" for v in hist.last().tolist())
                log.info(
                    "%-7s x=(%s) |f|=%.1e digits/it %.2f: %s",
                    problem.name, x, self.residual(problem, hist.last()),
                    self.rate(problem, hist), hist.status,
                )


if __name__ == "__main__":
    Bench([CircleLine(), Exponential()]).run()
