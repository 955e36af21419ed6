"""Tree-structured parameters and a hand written optimizer over their leaves."""
import math
from functools import reduce

import torch


class Bag:
    """A node which is iterable, in contrast to scalars."""

    def __init__(self, *items):
        self.items = list(items)

    def __iter__(self):
        return iter(self.items)

    def __repr__(self):
        return "Bag(" + ", ".join(map(repr, self.items)) + ")"


def is_scalar(node):
    try:
        iter(node)
    except TypeError:
        return True
    return False


def polynomial(coefficients, x):
    """Horner; a coefficient may be a number or a list of numbers to sum."""
    y = torch.zeros_like(x)
    for c in coefficients:
        if is_scalar(c):
            term = float(c)
        else:
            term = math.fsum(c)
        y = y * x + term
    return y


def compose(*fns):
    return reduce(lambda f, g: lambda x: g(f(x)), fns)


class Warp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (1 + x.abs()) ** 2


class Curve:
    def __init__(self, coefficients):
        self.coefficients = coefficients
        self.evaluate = torch.compile(self._evaluate, backend="eager")

    def _evaluate(self, x):
        return polynomial(self.coefficients, x)

    def __call__(self, x):
        return self.evaluate(x)


def arc_length(curve, n=50):
    t = torch.linspace(-1, 1, n)
    pipeline = compose(curve, Warp.apply)
    y = pipeline(t)
    dy, dt = y.diff(), t.diff()
    return torch.hypot(dy, dt).sum()


def steepest(curve):
    t = torch.linspace(-1, 1, 21).requires_grad_()
    Warp.apply(curve(t)).sum().backward()
    k = t.grad.abs().argmax()
    return t[k].item(), t.grad[k].item()


if __name__ == "__main__":
    curves = [
        Curve([[0.5, 0.5], [1.0, -2.0], [0.25]]),
        Curve([1, [0.5, 0.25], -1, 2]),
    ]
    for curve in curves:
        print(curve.coefficients)
        print("  length", round(arc_length(curve).item(), 5))
        print("  steepest", [round(v, 4) for v in steepest(curve)])
