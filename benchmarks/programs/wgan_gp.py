# torch: 2.8.0
"""Toy WGAN with gradient penalty on a mixture of two gaussians.

The critic's squashing output stage is compiled, since it used to be the hot spot in
the big version of this script.  What is checked at the end is that the penalty can
be differentiated: it is of no use to the critic otherwise.
"""
from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Callable, Iterator

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, IterableDataset

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {}


def register(name: str):
    def deco(cls):
        ACTIVATIONS[name] = cls
        return cls

    return deco


@register("leaky")
class Leaky(nn.LeakyReLU):
    def __init__(self) -> None:
        super().__init__(0.2)


@register("soft")
class Soft(nn.Softplus):
    pass


@dataclass
class Cfg:
    z_dim: int = 3
    x_dim: int = 2
    width: int = 8
    batch: int = 5
    n_critic: int = 2
    rounds: int = 2
    lam: float = 10.0
    act: str = "leaky"


class Mixture(IterableDataset):
    """Endless samples from 0.5 N(-2, .1) + 0.5 N(2, .1), cut off after `limit`."""

    def __init__(self, dim: int, limit: int) -> None:
        self.dim = dim
        self.limit = limit

    def __iter__(self) -> Iterator[torch.Tensor]:
        for i in range(self.limit):
            centre = 2.0 if i % 2 else -2.0
            yield centre + math.sqrt(0.1) * torch.randn(self.dim)


class Generator(nn.Module):
    def __init__(self, cfg: Cfg) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(cfg.z_dim, cfg.width),
            ACTIVATIONS[cfg.act](),
            nn.Linear(cfg.width, cfg.x_dim),
        )
        self.z_dim = cfg.z_dim

    def forward(self, n: int) -> torch.Tensor:
        return self.body(torch.randn(n, self.z_dim))


class Squash(nn.Module):
    """The critic's last stage."""

    def forward(self, score: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(score)


class Critic(nn.Module):
    def __init__(self, cfg: Cfg) -> None:
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Linear(cfg.x_dim, cfg.width),
            nn.Linear(cfg.width, cfg.width),
        ])
        self.act = ACTIVATIONS["soft"]()
        self.out = nn.Linear(cfg.width, 1)
        self.squash = torch.compile(Squash(), backend="aot_eager")

    def features(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = self.act(layer(x))
        return self.out(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.squash(self.features(x))


def interpolate(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    eps = torch.rand(real.shape[0], 1)
    mixed = eps * real + (1 - eps) * fake
    return mixed.detach().requires_grad_(True)


def slope(fn: Callable, x: torch.Tensor) -> torch.Tensor:
    """d fn / d x, differentiable itself."""
    out = fn(x)
    (grad,) = torch.autograd.grad(
        outputs=out,
        inputs=x,
        grad_outputs=torch.ones_like(out),
        create_graph=True,
        retain_graph=True,
    )
    return grad


class Penalty:
    def __init__(self, critic: Critic, lam: float) -> None:
        self.critic = critic
        self.lam = lam
        self.lost = 0
        self.seen = 0

    def output_slope(self, mixed: torch.Tensor) -> torch.Tensor:
        logits = self.critic.features(mixed).detach().requires_grad_(True)
        return slope(self.critic.squash, logits)

    def __call__(self, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        mixed = interpolate(real, fake)
        body = slope(self.critic.features, mixed)
        head = self.output_slope(mixed)
        self.seen += 1
        if not head.requires_grad:
            self.lost += 1
        norm = (body * head).norm(2, dim=1)
        return self.lam * ((norm - 1) ** 2).mean()


class Meter(dict):
    def push(self, **kw: float) -> None:
        for k, v in kw.items():
            self.setdefault(k, []).append(float(v))

    def summary(self) -> str:
        return " ".join(f"{k}={sum(v) / len(v):.4f}" for k, v in sorted(self.items()))


def take(loader: DataLoader) -> Iterator[torch.Tensor]:
    while True:
        yield from loader


def train(cfg: Cfg) -> Penalty:
    gen, critic = Generator(cfg), Critic(cfg)
    make_opt = functools.partial(optim.Adam, lr=1e-3, betas=(0.0, 0.9))
    opt_g, opt_c = make_opt(gen.parameters()), make_opt(critic.parameters())
    data = take(DataLoader(Mixture(cfg.x_dim, 20), batch_size=cfg.batch))
    penalty = Penalty(critic, cfg.lam)
    meter = Meter()
    for r in range(cfg.rounds):
        for _ in range(cfg.n_critic):
            real = next(data)
            with torch.no_grad():
                fake = gen(real.shape[0])
            gp = penalty(real, fake)
            loss_c = critic(fake).mean() - critic(real).mean() + gp
            opt_c.zero_grad(set_to_none=True)
            loss_c.backward()
            opt_c.step()
            meter.push(critic=loss_c.item(), gp=gp.item())
        loss_g = -critic(gen(cfg.batch)).mean()
        opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        opt_g.step()
        meter.push(gen=loss_g.item())
        print(f"[{r + 1}/{cfg.rounds}] {meter.summary()}")
    return penalty


def main() -> int:
    pen = train(Cfg())
    if pen.lost:
        print(f"penalty without a graph in {pen.lost} of {pen.seen} steps")
        return 1
    print("penalty is differentiable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
