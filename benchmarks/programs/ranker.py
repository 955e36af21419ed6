# torch: 2.13.0
"""Trains a tiny margin classifier for query routing."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    classes: int = 4
    features: int = 6
    batch: int = 5
    steps: int = 3
    lr: float = 0.5
    seed: int = 9


class Router(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.head = nn.Linear(cfg.features, cfg.classes)
        self.reset()

    def reset(self):
        with torch.no_grad():
            self.head.weight.zero_()
            self.head.bias.zero_()
            self.head.bias[0] = 1.0

    def forward(self, x):
        return self.head(x)


class Queries:
    def __init__(self, cfg):
        gen = torch.Generator().manual_seed(cfg.seed)
        shape = (cfg.steps, cfg.batch, cfg.features)
        self.x = torch.randint(-2, 3, shape, generator=gen).float()
        self.y = torch.zeros(cfg.steps, cfg.batch, dtype=torch.long)

    def __iter__(self):
        yield from zip(self.x, self.y)


def margin_objective(scores, target):
    return F.multi_margin_loss(scores, target, margin=1.0)


class Meter:
    def __init__(self):
        self.values = []

    def push(self, v):
        self.values.append(float(v))

    @property
    def worst(self):
        return max(self.values)


class Trainer:
    def __init__(self, cfg, objective):
        self.cfg = cfg
        self.model = Router(cfg)
        self.objective = objective
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg.lr)
        self.losses = Meter()
        self.grads = Meter()

    def grad_norm(self):
        parts = [p.grad.abs().sum() for p in self.model.parameters()]
        return torch.stack(parts).sum()

    def step(self, x, y):
        self.opt.zero_grad()
        loss = self.objective(self.model(x), y)
        loss.backward()
        self.losses.push(loss.detach())
        self.grads.push(self.grad_norm())
        self.opt.step()

    def fit(self, data):
        for x, y in data:
            self.step(x, y)
        return self


def drift(model, cfg):
    fresh = Router(cfg)
    total = 0.0
    for a, b in zip(model.parameters(), fresh.parameters()):
        total += (a - b).abs().sum().item()
    return total


def main():
    cfg = Config()
    objective = torch.compile(margin_objective, backend="aot_eager_decomp_partition")
    trainer = Trainer(cfg, objective).fit(Queries(cfg))
    moved = drift(trainer.model, cfg)
    print("losses", trainer.losses.values, "grads", trainer.grads.values)
    assert trainer.losses.values[0] == 0.0
    assert moved == 0.0, f"a satisfied model was moved by {moved:.4f}"


if __name__ == "__main__":
    main()
