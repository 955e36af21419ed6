# torch: 2.8.0
"""Physics-informed network for a driven relaxation  u' + k u = f cos(w t),  u(0) = 1."""
import math
from contextlib import contextmanager
from time import perf_counter
from typing import Callable, Tuple

import torch
import torch.nn as nn

OMEGA = 3.0
DECAY = 0.8
DRIVE = 2.0
T_END = 1.5


class Timer:
    def __init__(self):
        self.spans = {}

    @contextmanager
    def __call__(self, name):
        t0 = perf_counter()
        try:
            yield
        finally:
            self.spans[name] = self.spans.get(name, 0.0) + perf_counter() - t0


class Sine(nn.Module):
    def __init__(self, scale: float = 1.0):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return torch.sin(self.scale * x)

    def extra_repr(self):
        return f"scale={self.scale}"


class RelaxationNet(nn.Module):
    """Hard-wires u(0) = 1 in the ansatz."""

    def __init__(self, width: int = 16, depth: int = 2):
        super().__init__()
        layers = [nn.Linear(1, width), Sine(2.0)]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        layers.append(nn.Linear(width, 1))
        self.body = nn.Sequential(*layers)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, t):
        return 1.0 + t * self.body(t)


def exact(t: torch.Tensor) -> torch.Tensor:
    den = DECAY ** 2 + OMEGA ** 2
    a, b = DRIVE * DECAY / den, DRIVE * OMEGA / den
    return a * torch.cos(OMEGA * t) + b * torch.sin(OMEGA * t) + (1 - a) * torch.exp(-DECAY * t)


def derivatives(u: Callable, t: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    value = u(t)
    (slope,) = torch.autograd.grad(value.sum(), t, create_graph=True)
    return value, slope


def residual(u: Callable, t: torch.Tensor) -> torch.Tensor:
    value, slope = derivatives(u, t)
    return slope + DECAY * value - DRIVE * torch.cos(OMEGA * t)


class Collocation:
    def __init__(self, n: int, seed: int):
        self.n = n
        self.gen = torch.Generator().manual_seed(seed)

    def draw(self) -> torch.Tensor:
        base = (torch.arange(self.n).float() + torch.rand(self.n, generator=self.gen)) / self.n
        return (base * T_END).unsqueeze(1).requires_grad_()


def supervised_pretrain(model, steps=20):
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    t = torch.linspace(0, 0.4, 9).unsqueeze(1)
    y = exact(t)
    for _ in range(steps):
        loss = (model(t) - y).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def train(model, u, iterations=60):
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, iterations)
    points = Collocation(24, seed=2)
    curve = []
    for _ in range(iterations):
        loss = residual(u, points.draw()).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        curve.append(loss.item())
    return curve


def main():
    torch.manual_seed(0)
    timer = Timer()
    model = RelaxationNet()
    print(model)
    with timer("pretrain"):
        print(f"pretrain loss {supervised_pretrain(model):.5f}")
    u = torch.compile(model, backend="aot_eager")
    with timer("train"):
        curve = train(model, u)
    print("residual loss", " ".join(f"{v:.3f}" for v in curve[::15]), f"{curve[-1]:.3f}")
    with torch.no_grad():
        t = torch.linspace(0, T_END, 31).unsqueeze(1)
        err = (model(t) - exact(t)).abs().max().item()
    print(f"max error {err:.3f}, timed {sorted(timer.spans)}")


if __name__ == "__main__":
    main()
