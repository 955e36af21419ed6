# torch: 2.8.0
"""Quantised embedding lookup for a toy weather model.

Categorical readings arrive as small wrapper objects that know their own code
(`__index__`), so that they can be used directly to index tables."""
import functools

import torch
from torch import nn


@functools.total_ordering
class Level:
    _names = ("calm", "breeze", "gale", "storm")

    def __init__(self, name):
        self.code = self._names.index(name)

    def __index__(self):
        return self.code

    def __eq__(self, other):
        return isinstance(other, Level) and self.code == other.code

    def __lt__(self, other):
        return self.code < other.code

    def __hash__(self):
        return hash(self.code)

    def __str__(self):
        return self._names[self.code]


class WindModel(nn.Module):
    # damping per level; python floats, since they never train
    damping = [1.0, 0.9, 0.6, 0.2]

    def __init__(self, width):
        super().__init__()
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, x, level: Level):
        h = torch.zeros_like(x)
        for _ in range(3):
            h = self.cell(x, h) * self.damping[level]
        return self.head(h).squeeze(-1)


def group_by_level(readings):
    groups = {}
    for level, features in readings:
        groups.setdefault(level, []).append(features)
    return {k: torch.stack(v) for k, v in sorted(groups.items(), key=lambda kv: kv[0])}


def synthetic_readings(n, width):
    names = Level._names
    picks = torch.randint(0, len(names), (n,)).tolist()
    for pick in picks:
        yield Level(names[pick]), torch.randn(width) * (1 + pick)


def train(model, groups, epochs):
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    forward = torch.compile(model, backend="eager", dynamic=True)
    curve = []
    for _ in range(epochs):
        total = torch.zeros(())
        for level, x in groups.items():
            target = x.abs().mean(-1)
            total = total + (forward(x, level) - target).abs().mean()
        opt.zero_grad()
        total.backward()
        opt.step()
        curve.append(total.item())
    return curve


def main():
    torch.manual_seed(4)
    groups = group_by_level(synthetic_readings(24, 6))
    for level, x in groups.items():
        print(f"{level!s:7} {tuple(x.shape)}")
    curve = train(WindModel(6), groups, epochs=6)
    print(" ".join(f"{v:.3f}" for v in curve))
    assert curve[-1] < curve[0]


if __name__ == "__main__":
    main()
