# torch: 2.8.0
"""Jacobi relaxation where a policy object selects the working precision."""
import enum
import math

import torch


class Precision(enum.Enum):
    SINGLE = torch.float32
    DOUBLE = torch.float64

    @property
    def label(self):
        return str(self.value).rpartition(".")[2]


class Policy:
    """Applies a precision to everything allocated by the solver."""

    def __init__(self, precision):
        self.precision = precision
        self.previous = []

    def push(self):
        self.previous.append(torch.get_default_dtype())
        torch.set_default_dtype(self.precision.value)

    def pop(self):
        torch.set_default_dtype(self.previous.pop())


class Workspace:
    def __init__(self, n):
        self.n = n
        self.h = 1.0 / (n + 1)
        self.solution = torch.zeros(n + 2)
        self.grid = torch.linspace(0, 1, n + 2)

    def interior(self, v):
        return v[1:-1]


def source(x):
    return math.pi ** 2 * torch.sin(math.pi * x)


def relax(ws, f, sweeps, omega):
    u = ws.solution
    for _ in range(sweeps):
        mid = 0.5 * (u[:-2] + u[2:] + ws.h ** 2 * f)
        new = (1 - omega) * ws.interior(u) + omega * mid
        u = torch.nn.functional.pad(new, (1, 1))
    return u


@torch.compile(backend="aot_eager")
def solve(n, policy, sweeps, omega):
    policy.push()
    ws = Workspace(n)
    policy.pop()
    f = source(ws.interior(ws.grid))
    u = relax(ws, f, sweeps, omega)
    return u, ws.grid


@torch.compile(backend="aot_eager")
def max_error(u, grid):
    exact = torch.sin(math.pi * grid.to(torch.float64))
    return (u.to(torch.float64) - exact).abs().max()


class Report:
    def __init__(self):
        self.lines = []

    def add(self, precision, u, err):
        self.lines.append(f"{precision.label:8} got={str(u.dtype):13} bytes={u.nbytes:4} err={err:.5f}")

    def __iter__(self):
        return iter(self.lines)


def main():
    report = Report()
    for precision in Precision:
        policy = Policy(precision)
        u, grid = solve(7, policy, sweeps=30, omega=0.9)
        err = max_error(u, grid).item()
        report.add(precision, u, err)
    for line in report:
        print(line)
    print("default", torch.get_default_dtype())


if __name__ == "__main__":
    main()
