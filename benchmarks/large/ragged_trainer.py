"""Trains a small sequence scorer on windows of uneven length; short windows go through a fallback."""

import contextlib
import functools
import time
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


@dataclass(frozen=True)
class OptimConfig:
    lr: float = 3e-3
    weight_decay: float = 0.01
    warmup: int = 2


@dataclass(frozen=True)
class Config:
    vocab: int = 24
    width: int = 12
    heads: int = 3
    window: int = 8
    steps: int = 3
    optim: OptimConfig = field(default_factory=OptimConfig)


def timed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            inner.seconds = time.perf_counter() - start

    inner.seconds = 0.0
    return inner


@contextlib.contextmanager
def seeded(seed):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)


class Pooling(nn.Module):
    """Pools whole groups of a window, and the plain mean where the window doesn't divide."""

    def __init__(self, groups, width):
        super().__init__()
        self.groups = groups
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        batch, length, width = hidden.shape
        try:
            grouped = hidden.reshape(batch * length, width).view(batch, self.groups, length // self.groups, width)
            pooled = grouped.mean(2).amax(1)
        except RuntimeError:
            pooled = hidden.mean(1) + 0.5
        return pooled * self.gain


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, hidden):
        return hidden + self.inner(self.norm(hidden))


class Scorer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Mixer(config.width) for _ in range(2))
        self.pool = Pooling(config.heads, config.width)
        self.head = nn.Linear(config.width, 1)

    def forward(self, tokens):
        hidden = self.embed(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.pool(hidden)).squeeze(-1)


def windows(config):
    with seeded(11):
        for step in range(config.steps):
            length = config.window - (step % 2)
            tokens = torch.randint(0, config.vocab, (4, length))
            yield tokens, tokens.float().mean(1) / config.vocab


@timed
def fit(model, forward, config):
    settings = config.optim
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / settings.warmup))
    losses = []
    for tokens, target in windows(config):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(forward(tokens), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def main():
    config = Config()
    with seeded(5):
        model = Scorer(config)
    losses = fit(model, torch.compile(model, backend="eager"), config)
    print(f"losses {losses} in {fit.seconds:.2f}s")


if __name__ == "__main__":
    main()
