"""Newton solver with a working precision that is selected per call."""
import collections
import math
import warnings

import torch

Result = collections.namedtuple("Result", "root residual iterations dtype")

PRECISIONS = {"single": torch.float32, "double": torch.float64}


class Polynomial:
    """c[0] + c[1] x + c[2] x^2 + ..."""

    def __init__(self, *coeffs):
        self.coeffs = coeffs

    def __call__(self, x):
        acc = x * 0
        for c in reversed(self.coeffs):
            acc = acc * x + c
        return acc

    def derivative(self):
        return Polynomial(*(k * c for k, c in enumerate(self.coeffs) if k))

    def __str__(self):
        return " + ".join(f"{c}x^{k}" for k, c in enumerate(self.coeffs))


class Solver:
    def __init__(self, poly, precision="double", max_iter=30):
        self.poly = poly
        self.dpoly = poly.derivative()
        self.precision = precision
        self.max_iter = max_iter

    def start(self, n):
        """Starting grid, created in the working precision."""
        torch.set_default_dtype(PRECISIONS[self.precision])
        return torch.linspace(1.0, 3.0, n)

    def iterate(self, x):
        return x - self.poly(x) / self.dpoly(x)

    def sweep(self, n):
        x = self.start(n)
        for _ in range(self.max_iter):
            x = self.iterate(x)
        return x


def solve(sweep, poly, n=3):
    before = torch.get_default_dtype()
    try:
        x = sweep(n)
    finally:
        torch.set_default_dtype(before)
    residual = poly(x).abs().max().item()
    return Result(x.mean().item(), residual, n, x.dtype)


def newton_report(result, label):
    print(f"{label:<9} root={result.root:.15f} residual={result.residual:.1e} {result.dtype}")
    if result.residual > 1e-9:
        warnings.warn(f"{label}: poor residual")


def main():
    poly = Polynomial(-2.0, 0.0, 1.0)
    print("solving", poly)
    solver = Solver(poly)
    plain = solve(solver.sweep, poly)
    newton_report(plain, "eager")
    fast = solve(torch.compile(solver.sweep, backend="aot_eager"), poly)
    newton_report(fast, "compiled")
    assert abs(plain.root - math.sqrt(2)) < 1e-12
    assert abs(fast.root - math.sqrt(2)) < 1e-12


main()
