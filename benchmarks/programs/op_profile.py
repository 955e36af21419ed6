# torch: 2.13.0
"""A small filter bank whose kernels keep a note of how often they ran."""
import contextlib
import math

import torch

KERNELS = {}


def kernel(name):
    def register(fn):
        KERNELS[name] = fn
        return fn

    return register


@kernel("box")
def box(x):
    box.calls = getattr(box, "calls", 0) + 1
    return (x[:-2] + x[1:-1] + x[2:]) / 3


@kernel("edge")
def edge(x):
    edge.calls = getattr(edge, "calls", 0) + 1
    return (x[2:] - x[:-2]) / edge.calls


@kernel("peak")
def peak(x):
    peak.calls = getattr(peak, "calls", 0) + 1
    return torch.maximum(torch.maximum(x[:-2], x[1:-1]), x[2:])


class Chain:
    def __init__(self, *names):
        self.names = names
        self.history = []
        self._apply = torch.compile(self.forward, backend="eager")

    def forward(self, x):
        for name in self.names:
            x = KERNELS[name](x)
        return x

    def __call__(self, x):
        out = self._apply(x)
        self.history.append(out.abs().mean().item())
        return out


class Profile:
    def __init__(self):
        self.before = {}
        self.delta = {}

    @staticmethod
    def read():
        return {n: getattr(f, "calls", 0) for n, f in KERNELS.items()}

    def __enter__(self):
        self.before = self.read()
        return self

    def __exit__(self, *exc):
        after = self.read()
        self.delta = {n: after[n] - self.before[n] for n in after}
        return False


def chirp(n, f0, f1):
    t = torch.linspace(0, 1, n)
    return torch.sin(2 * math.pi * (f0 + (f1 - f0) * t) * t)


@contextlib.contextmanager
def quiet():
    prev = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        yield
    finally:
        torch.set_grad_enabled(prev)


def stream(blocks, size):
    for i in range(blocks):
        yield chirp(size, 1.0 + i, 4.0 + i)


def report(profile, chain):
    lines = [f"{name:>6}: {count}" for name, count in sorted(profile.delta.items())]
    lines.append("levels: " + ", ".join(f"{h:.4f}" for h in chain.history))
    return "\n".join(lines)


def main():
    chain = Chain("box", "edge", "peak")
    blocks = 4
    with quiet(), Profile() as prof:
        for signal in stream(blocks, 64):
            out = chain(signal)
            assert out.shape == (58,)
    print(report(prof, chain))
    wrong = {n: c for n, c in prof.delta.items() if c != blocks}
    assert not wrong, f"kernels ran {wrong}, expected {blocks} each"


if __name__ == "__main__":
    main()
