# torch: 2.13.0
"""Numerical integration with a selectable working precision.  The precision is
switched with a small context manager around each solve."""
import argparse
import contextlib
import logging
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Tuple, Type

import torch

logger = logging.getLogger("ode")

Vector = torch.Tensor
Rhs = Callable[[float, Vector], Vector]


@dataclass(frozen=True)
class Problem:
    name: str
    rhs: Rhs
    initial: Tuple[float, ...]
    horizon: float

    def state(self) -> Vector:
        return torch.tensor(self.initial)


def oscillator(t: float, y: Vector) -> Vector:
    return torch.stack([y[1], -y[0]])


def decay(t: float, y: Vector) -> Vector:
    return -0.5 * y


PROBLEMS: Dict[str, Problem] = {
    p.name: p
    for p in (
        Problem("oscillator", oscillator, (1.0, 0.0), 2 * math.pi),
        Problem("decay", decay, (1.0, 2.0, 4.0), 3.0),
    )
}


@contextlib.contextmanager
def working_precision(dtype: torch.dtype) -> Iterator[torch.dtype]:
    previous = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        yield previous
    finally:
        torch.set_default_dtype(previous)


class Stepper(ABC):
    order: int = 0
    registry: List[Type["Stepper"]] = []

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        Stepper.registry.append(cls)

    @abstractmethod
    def advance(self, rhs: Rhs, t: float, y: Vector, h: float) -> Vector:
        ...


class Euler(Stepper):
    order = 1

    def advance(self, rhs: Rhs, t: float, y: Vector, h: float) -> Vector:
        return y + h * rhs(t, y)


class Heun(Stepper):
    order = 2

    def advance(self, rhs: Rhs, t: float, y: Vector, h: float) -> Vector:
        k1 = rhs(t, y)
        k2 = rhs(t + h, y + h * k1)
        return y + 0.5 * h * (k1 + k2)


class RungeKutta(Stepper):
    order = 4

    def advance(self, rhs: Rhs, t: float, y: Vector, h: float) -> Vector:
        k1 = rhs(t, y)
        k2 = rhs(t + h / 2, y + h / 2 * k1)
        k3 = rhs(t + h / 2, y + h / 2 * k2)
        k4 = rhs(t + h, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def quadrature_nodes(count: int, dtype: torch.dtype) -> Tuple[Vector, Vector]:
    """Nodes and weights of the composite Simpson rule in the given precision."""
    with working_precision(dtype):
        nodes = torch.linspace(0.0, 1.0, count)
        weights = torch.ones(count)
        weights[1:-1:2] = 4.0
        weights[2:-1:2] = 2.0
    return nodes, weights / weights.sum()


class Solver:
    def __init__(self, stepper: Stepper, steps: int, dtype: torch.dtype) -> None:
        self.stepper = stepper
        self.steps = steps
        self.dtype = dtype
        self.path: List[Vector] = []

    def solve(self, problem: Problem) -> Vector:
        with working_precision(self.dtype):
            y = problem.state()
            h = problem.horizon / self.steps
            self.path = [y]
            for k in range(self.steps):
                y = self.stepper.advance(problem.rhs, k * h, y, h)
                self.path.append(y)
        return y

    def mean_energy(self, nodes_fn: Callable) -> float:
        nodes, weights = nodes_fn(self.steps + 1, self.dtype)
        energy = torch.stack([0.5 * (p * p).sum() for p in self.path])
        return float((energy.to(weights.dtype) * weights).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()
    torch.manual_seed(0)
    nodes_fn = torch.compile(quadrature_nodes, backend=args.backend)
    for cls in sorted(Stepper.registry, key=lambda c: c.order):
        for problem in PROBLEMS.values():
            solver = Solver(cls(), args.steps, torch.float64)
            final = solver.solve(problem)
            logger.info("%s %s", cls.__name__, final.dtype)
            print(
                f"{cls.__name__:<10} {problem.name:<10}",
                [f"{v:.6f}" for v in final.tolist()],
                f"energy {solver.mean_energy(nodes_fn):.6f}",
            )
    nodes, weights = nodes_fn(args.steps + 1, torch.float64)
    print("nodes", nodes.dtype, "weights", weights.dtype)
    err = abs(float((weights * nodes**2).sum()) - 1.0 / 3.0)
    assert torch.get_default_dtype() is torch.float32
    assert err < 1e-12, f"Simpson must be exact for squares, error {err:.2e}"


if __name__ == "__main__":
    main()
