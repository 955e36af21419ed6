"""Whitening by inverse square roots, with signed zeros as pole markers."""
import argparse
import math
from typing import NamedTuple

import torch


class Report(NamedTuple):
    finite: int
    upper: int
    lower: int


class Spectrum:
    def __init__(self, values):
        self.values = values

    @classmethod
    def comb(cls, n):
        k = torch.arange(n, dtype=torch.float32)
        values = (k - n // 2).abs() / n
        values[::5] = 0.0
        values[::10] = -0.0
        return cls(values)

    def __len__(self):
        return self.values.numel()


def damp(x, strength):
    return x * (1.0 + strength * torch.cos(math.pi * x))


def whiten(x, exponent, strength):
    """x ** exponent; signed zeros decide on the side of the pole."""
    y = damp(x, strength)
    return y ** exponent


def count(y):
    return Report(
        finite=int(torch.isfinite(y).sum()),
        upper=int((y == math.inf).sum()),
        lower=int((y == -math.inf).sum()),
    )


class Whitener:
    EXPONENTS = {"amplitude": -0.5, "power": -1.0}

    def __init__(self, kind, strength):
        self.exponent = self.EXPONENTS[kind]
        self.strength = strength
        self._fn = torch.compile(whiten)

    def __call__(self, spectrum):
        return self._fn(spectrum.values, self.exponent, self.strength)


def energy(y):
    return y[torch.isfinite(y)].square().sum().item()


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--kind", choices=list(Whitener.EXPONENTS), default="amplitude")
    p.add_argument("--size", type=int, default=20)
    p.add_argument("--strength", type=float, default=0.25)
    return p.parse_args(argv)


def main():
    args = parse()
    spectrum = Spectrum.comb(args.size)
    whitener = Whitener(args.kind, args.strength)
    y = whitener(spectrum)
    report = count(y)
    print("points", len(spectrum), report)
    print("energy", round(energy(y), 4))
    assert report.lower == 2, f"{report.lower} poles from below"


if __name__ == "__main__":
    main()
