# torch: 2.8.0
"""Curriculum with switched-off auxiliary losses and a skip-bad-step guard."""
import math
from collections import deque
from functools import partial
from typing import Dict, Iterator, NamedTuple

import torch
from torch import nn


class Phase(NamedTuple):
    name: str
    steps: int
    weights: Dict[str, int]


PHASES = (
    Phase("fit", 6, {"recon": 1, "prior": 0}),
    Phase("regularise", 6, {"recon": 1, "prior": 2}),
)


class Encoder(nn.Module):
    def __init__(self, dim, latent):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 12), nn.ELU(), nn.Linear(12, 2 * latent))

    def forward(self, x):
        mu, logvar = self.net(x).chunk(2, dim=-1)
        return mu, logvar


class Decoder(nn.Sequential):
    def __init__(self, dim, latent):
        super().__init__(nn.Linear(latent, 12), nn.ELU(), nn.Linear(12, dim))


class AutoEncoder(nn.Module):
    def __init__(self, dim=6, latent=2):
        super().__init__()
        self.enc = Encoder(dim, latent)
        self.dec = Decoder(dim, latent)

    def forward(self, x):
        mu, logvar = self.enc(x)
        return self.dec(mu), mu, logvar


def kl(mu, logvar):
    return 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(dim=-1)


class Objective:
    """Weighted sum of per-sample terms; one compiled function per phase."""

    def __init__(self, phase: Phase):
        self.phase = phase
        self._fn = torch.compile(self._total, backend="inductor")

    def _total(self, recon, prior):
        total = recon * self.phase.weights["recon"] + prior * self.phase.weights["prior"]
        return total.clamp(max=1e4)

    def __call__(self, recon, prior):
        return self._fn(recon, prior)


class Guard:
    """Looks for non-finite samples, drops them and keeps the recent history."""

    def __init__(self, memory=4):
        self.recent = deque(maxlen=memory)
        self.dropped = 0

    def filter(self, per_sample: torch.Tensor) -> torch.Tensor:
        ok = torch.isfinite(per_sample.detach())
        self.dropped += int((~ok).sum())
        kept = per_sample[ok]
        self.recent.append(kept.mean().item())
        return kept

    @property
    def average(self):
        return sum(self.recent) / len(self.recent) if self.recent else math.nan


def source(seed: int, dim: int = 6, batch: int = 10) -> Iterator[torch.Tensor]:
    gen = torch.Generator().manual_seed(seed)
    basis = torch.randn(2, dim, generator=gen)
    k = 0
    while True:
        x = torch.randn(batch, 2, generator=gen) @ basis
        x = x + 0.05 * torch.randn(batch, dim, generator=gen)
        if k % 3 == 2:
            x[k % batch, 0] = 4e4          # a broken sensor from time to time
        yield x
        k += 1


def winsor_log(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.sign(x) * torch.log1p(x.abs() / scale)


def grad_norm(params):
    return math.sqrt(sum(p.grad.square().sum().item() for p in params if p.grad is not None))


def run(seed=9):
    torch.manual_seed(seed)
    model = AutoEncoder()
    opt = torch.optim.RMSprop(model.parameters(), lr=0.01)
    stream, squash = source(seed), partial(winsor_log, scale=2.0)
    for phase in PHASES:
        objective, guard = Objective(phase), Guard()
        norms = []
        for step in range(phase.steps):
            raw = next(stream)
            out, mu, logvar = model(squash(raw))
            recon = (out - squash(raw)).square().mean(dim=-1)
            # the prior term sees the raw magnitudes, which may overflow exp()
            with torch.no_grad():
                load = kl(mu, logvar + raw[:, :1].abs() / 100)
            loss = guard.filter(objective(recon, load)).mean()
            opt.zero_grad()
            loss.backward()
            norms.append(grad_norm(model.parameters()))
            opt.step()
        print(f"{phase.name:<10} weights {phase.weights} recent {guard.average:.3f} "
              f"dropped {guard.dropped} grad {norms[0]:.3f} -> {norms[-1]:.3f}")
    return model


if __name__ == "__main__":
    net = run()
    with torch.no_grad():
        x = winsor_log(next(source(1)), 2.0)
        recon, mu, _ = net(x)
    print("held-out mse", f"{(recon - x).square().mean():.3f}", "latent std", f"{mu.std():.3f}")
