# torch: 2.8.0
"""Adversarial feature training with a gradient gate.  The gate rescales the
activations in place (to save memory) and reverses their gradient."""
import argparse
import logging
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function

logger = logging.getLogger("gate")


@dataclass
class GateConfig:
    features: int = 5
    hidden: int = 6
    domains: int = 2
    samples: int = 10
    epochs: int = 5
    lr: float = 0.2
    strength: float = 0.5
    backend: str = "aot_eager"
    seed: int = 13


class ScaleReverse(Function):
    """y <- strength * y in place; the gradient is reversed on the way back."""

    @staticmethod
    def forward(ctx: Any, y: torch.Tensor, strength: float) -> torch.Tensor:
        ctx.strength = strength
        ctx.mark_dirty(y)
        y.mul_(strength)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[torch.Tensor, None]:
        return -ctx.strength * grad, None


class Trunk(nn.Module):
    def __init__(self, cfg: GateConfig) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            OrderedDict(
                [
                    ("inner", nn.Linear(cfg.features, cfg.hidden)),
                    ("act", nn.Tanh()),
                    ("outer", nn.Linear(cfg.hidden, cfg.hidden)),
                ]
            )
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class DomainCritic(nn.Module):
    """Penalises activations which tell the domains apart."""

    def __init__(self, cfg: GateConfig) -> None:
        super().__init__()
        self.strength = cfg.strength
        self.head = nn.Linear(cfg.hidden, cfg.domains)

    def forward(self, activations: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
        ScaleReverse.apply(activations, self.strength)
        logits = self.head(activations)
        return F.cross_entropy(logits, domain)


class AdversarialModel(nn.Module):
    def __init__(self, cfg: GateConfig) -> None:
        super().__init__()
        self.trunk = Trunk(cfg)
        self.critic = DomainCritic(cfg)
        self.reset(math.sqrt(1.0 / cfg.hidden))

    @torch.no_grad()
    def reset(self, bound: float) -> None:
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                p.zero_()
            else:
                p.uniform_(-bound, bound)

    def forward(self, x: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
        hidden = self.trunk(x)
        activations = hidden * 1.0
        return self.critic(activations, domain)


class GradientWatch:
    """Collects the gradient norm of the trunk after every step."""

    def __init__(self, model: AdversarialModel) -> None:
        self.model = model
        self.norms: List[float] = []
        self.first: Optional[Dict[str, torch.Tensor]] = None

    def sample(self) -> None:
        grads = {n: p.grad.clone() for n, p in self.model.trunk.named_parameters()}
        if self.first is None:
            self.first = grads
        self.norms.append(float(torch.stack([g.norm() for g in grads.values()]).norm()))


def make_data(cfg: GateConfig) -> Tuple[torch.Tensor, torch.Tensor]:
    gen = torch.Generator().manual_seed(cfg.seed)
    x = torch.randn(cfg.samples, cfg.features, generator=gen)
    domain = torch.arange(cfg.samples) % cfg.domains
    return x + domain[:, None] * 0.8, domain


def train(cfg: GateConfig) -> Tuple[List[float], GradientWatch]:
    model = AdversarialModel(cfg)
    forward = torch.compile(model, backend=cfg.backend)
    groups = [
        {"params": model.trunk.parameters(), "lr": cfg.lr},
        {"params": model.critic.head.parameters(), "lr": cfg.lr / 2},
    ]
    optimizer = torch.optim.SGD(groups)
    watch = GradientWatch(model)
    x, domain = make_data(cfg)
    losses: List[float] = []
    for epoch in range(cfg.epochs):
        optimizer.zero_grad(set_to_none=True)
        loss = forward(x, domain)
        loss.backward()
        watch.sample()
        optimizer.step()
        losses.append(loss.item())
        logger.info("epoch %d loss %.5f", epoch, losses[-1])
    return losses, watch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO if args.verbose else logging.ERROR)
    cfg = GateConfig(epochs=args.epochs, backend=args.backend)
    torch.manual_seed(cfg.seed)
    losses, watch = train(cfg)
    for epoch, (loss, norm) in enumerate(zip(losses, watch.norms)):
        print(f"epoch {epoch} loss {loss:.5f} trunk gradient {norm:.5f}")
    trend = losses[-1] - losses[0]
    print("trend", f"{trend:+.5f}", "keys", sorted(watch.first))
    if trend <= 0:
        raise RuntimeError("the reversed gradient must make the critic's task harder")


if __name__ == "__main__":
    main()
