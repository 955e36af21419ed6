# torch: 2.8.0
"""A tiny reverse-topological visitor over a graph of shared activations."""
from __future__ import annotations

import torch
import torch.nn as nn


class Tape:
    """Remembers the energies met so far."""

    def __init__(self):
        self.seen = []

    def visit(self, t):
        energy = l2(t)
        known = energy in self.seen
        self.seen.append(energy)
        return energy, known

    def __len__(self):
        return len(self.seen)


class Residual(nn.Module):
    def __init__(self, dim, active=True):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.active = active

    def forward(self, x):
        if not self.active:
            return x
        return x + torch.tanh(self.proj(x))


class Tower(nn.Module):
    def __init__(self, dim, pattern):
        super().__init__()
        self.blocks = nn.ModuleList(Residual(dim, on) for on in pattern)

    def forward(self, x):
        acts = [x]
        for block in self.blocks:
            acts.append(block(acts[-1]))
        return acts


def l2(t):
    return t.pow(2).mean()


def penalty(acts):
    tape = Tape()
    total = acts[0].new_zeros(())
    repeats = 0
    for t in acts:
        energy, known = tape.visit(t)
        repeats += known
        total = total + energy
    return total / len(tape), repeats


class Objective:
    def __init__(self, tower, weight=0.1):
        self.tower = tower
        self.weight = weight

    def __call__(self, x, y):
        acts = self.tower(x)
        reg, repeats = penalty(acts)
        fit = (acts[-1].sum(-1) - y).pow(2).mean()
        return fit + self.weight * reg, repeats


def patterns():
    yield "skip-first", (False, True, True)
    yield "skip-both", (False, False, True)


def data(n, dim):
    i = torch.arange(n * dim, dtype=torch.float32).reshape(n, dim)
    x = torch.sin(i)
    return x, x.pow(2).sum(-1)


def fit(name, pattern, backend):
    torch.manual_seed(len(name))
    tower = Tower(3, pattern)
    objective = torch.compile(Objective(tower).__call__, backend=backend)
    opt = torch.optim.SGD(tower.parameters(), lr=0.01)
    x, y = data(6, 3)
    for step in range(3):
        loss, repeats = objective(x, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"{name} step {step} loss {loss.item():.4f} repeats {repeats!r}")


def main():
    for name, pattern in patterns():
        fit(name, pattern, "eager")


if __name__ == "__main__":
    main()
