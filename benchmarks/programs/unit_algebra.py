# torch: 2.8.0
"""Uncertainty propagation for a sensor rig: plain readings and calibrated readings add up differently."""
import contextlib
import io
import torch


class Reading:
    kind = "raw"

    def __init__(self, value, sigma):
        self.value = value
        self.sigma = sigma

    def __add__(self, other):
        return Reading(self.value + other.value, self.sigma + other.sigma)

    def __mul__(self, k):
        return type(self)(self.value * k, self.sigma * abs(k))


class Calibrated(Reading):
    """errors of a calibrated reading are independent: they add in quadrature"""

    kind = "calibrated"

    def __add__(self, other):
        return Calibrated(self.value + other.value, (self.sigma**2 + other.sigma**2) ** 0.5)

    def __radd__(self, other):
        return Calibrated(other.value + self.value, (self.sigma**2 + other.sigma**2) ** 0.5)


class Rig:
    def __init__(self):
        self.channels = []

    def channel(self, cls, sigma, weight=1):
        self.channels.append((cls, sigma, weight))
        return self

    def fuse(self, samples):
        cls, sigma, w = self.channels[0]
        total = cls(samples[0], sigma) * w
        for (cls, sigma, w), s in zip(self.channels[1:], samples[1:]):
            total = total + cls(s, sigma) * w
        return total.value / len(self.channels), total.sigma, total.kind


@contextlib.contextmanager
def section(title, out):
    out.write(f"[{title}]\n")
    yield out
    out.write("--\n")


def stream(n, width):
    g = torch.Generator().manual_seed(5)
    base = torch.linspace(0, 1, width)
    for i in range(n):
        yield [base + i, base * 2 + torch.rand(width, generator=g) * 0, base - i]


def main():
    rig = Rig().channel(Reading, 3.0).channel(Calibrated, 4.0).channel(Calibrated, 12.0, 1)
    fuse = torch.compile(rig.fuse, backend="eager")
    out = io.StringIO()
    history = []
    for step, samples in enumerate(stream(3, 4)):
        value, sigma, kind = fuse(samples)
        history.append(value)
        with section(f"step {step}", out) as o:
            o.write(f"value {value.mean().item():.4f} sigma {sigma:.2f} {kind}\n")
    with section("summary", out) as o:
        o.write(f"drift {(history[-1] - history[0]).abs().max().item():.4f}\n")
    print(out.getvalue(), end="")


main()
