# torch: 2.13.0
"""Tiny denoising trainer with a host-side augmentation source.

Augmentation strength is drawn from a dedicated `random.Random`, so that the
schedule can be replayed independently from torch's own generator.
"""
import random
from dataclasses import dataclass, field

import torch
from torch import nn

aug_rng = random.Random(1234)


@dataclass
class TrainConfig:
    width: int = 12
    hidden: int = 20
    batch: int = 16
    steps: int = 12
    lr: float = 0.05
    min_gain: float = 0.5
    max_gain: float = 1.5
    seed: int = 7


@dataclass
class History:
    losses: list = field(default_factory=list)
    gains: list = field(default_factory=list)

    def add(self, loss, gain):
        self.losses.append(float(loss))
        self.gains.append(float(gain))


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(cfg.width, cfg.hidden),
            nn.Tanh(),
            nn.Linear(cfg.hidden, cfg.width),
        )

    def forward(self, x):
        return x + self.body(x)


def make_corpus(cfg):
    t = torch.linspace(0, 6.28, cfg.width)
    phase = torch.rand(64, 1) * 6.28
    freq = torch.randint(1, 4, (64, 1)).float()
    return torch.sin(freq * t + phase)


def batches(corpus, cfg):
    order = torch.randperm(corpus.shape[0])
    cursor = 0
    while True:
        if cursor + cfg.batch > corpus.shape[0]:
            order = torch.randperm(corpus.shape[0])
            cursor = 0
        yield corpus[order[cursor : cursor + cfg.batch]]
        cursor += cfg.batch


def make_augment(cfg):
    lo, hi = cfg.min_gain, cfg.max_gain

    @torch.compile(backend="eager")
    def augment(clean, noise):
        gain = aug_rng.uniform(lo, hi)
        noisy = clean * gain + 0.1 * noise
        return noisy, clean * gain

    return augment


def estimate_gain(target, clean):
    return (target * clean).sum() / (clean * clean).sum()


def train(cfg):
    torch.manual_seed(cfg.seed)
    corpus = make_corpus(cfg)
    model = Denoiser(cfg)
    opt = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    augment = make_augment(cfg)
    history = History()
    feed = batches(corpus, cfg)
    for _ in range(cfg.steps):
        clean = next(feed)
        noisy, target = augment(clean, torch.randn_like(clean))
        loss = nn.functional.mse_loss(model(noisy), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.add(loss.detach(), estimate_gain(target, clean))
    return history


def spread(values):
    return max(values) - min(values)


def main():
    cfg = TrainConfig()
    history = train(cfg)
    print("gains", [round(g, 3) for g in history.gains])
    print("loss  %.4f -> %.4f" % (history.losses[0], history.losses[-1]))
    if spread(history.gains) < 0.1:
        raise SystemExit("augmentation strength never changes: %r" % history.gains[:3])


if __name__ == "__main__":
    main()
