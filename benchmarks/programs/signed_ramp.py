# torch: 2.13.0
"""Optimiser experiments with a signed bias ramp.  The ramp decides from which
side of zero the parameters are approached, so the sign of zero is meaningful."""
import copy
import dataclasses
import functools
import logging
import math
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import torch
import torch.nn as nn

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class RampConfig:
    start: float = 0.0
    stop: float = -0.75
    phases: int = 4
    lr: float = 0.1
    momentum: float = 0.5
    inner_steps: int = 2
    backend: str = "eager"
    extra: Dict[str, Any] = dataclasses.field(default_factory=dict)

    def with_(self, **kw: Any) -> "RampConfig":
        return dataclasses.replace(self, **kw)

    def bias(self, phase: int) -> float:
        frac = phase / max(self.phases - 1, 1)
        return (1.0 - frac) * self.start + frac * self.stop


class Quadratic(nn.Module):
    """A small convex problem with a coupling matrix."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.point = nn.Parameter(torch.linspace(-1.0, 1.0, dim))
        matrix = torch.eye(dim) + 0.1 * torch.ones(dim, dim)
        self.register_buffer("matrix", matrix)

    def forward(self) -> torch.Tensor:
        return 0.5 * self.point @ self.matrix @ self.point


class Momentum:
    def __init__(self, params: Iterable[nn.Parameter], lr: float, momentum: float) -> None:
        self.params = list(params)
        self.lr = lr
        self.momentum = momentum
        self.state: List[torch.Tensor] = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, direction: torch.Tensor) -> None:
        for p, buf in zip(self.params, self.state):
            if p.grad is None:
                continue
            buf.mul_(self.momentum).add_(p.grad * direction)
            p.sub_(self.lr * buf)

    def zero_grad(self) -> None:
        for p in self.params:
            p.grad = None


def direction_field(magnitude: torch.Tensor, bias: float) -> torch.Tensor:
    """Every entry takes its sign from the bias; the magnitude is damped."""
    reference = torch.full_like(magnitude, bias)
    damped = magnitude / (1.0 + reference.abs())
    return torch.copysign(damped, reference)


@functools.singledispatch
def summarize(value: Any) -> str:
    return repr(value)


@summarize.register
def _(value: torch.Tensor) -> str:
    return "[" + ", ".join(f"{v:+.4f}" for v in value.flatten().tolist()) + "]"


@summarize.register
def _(value: dict) -> str:
    return "{" + ", ".join(f"{k}: {summarize(v)}" for k, v in value.items()) + "}"


class Experiment:
    def __init__(self, cfg: RampConfig, dim: int = 5) -> None:
        self.cfg = cfg
        self.problem = Quadratic(dim)
        self.optimizer = Momentum(self.problem.parameters(), cfg.lr, cfg.momentum)
        self.field = torch.compile(direction_field, backend=cfg.backend)
        self.log: List[Tuple[float, float]] = []
        self.best: Optional[Mapping[str, torch.Tensor]] = None

    def run_phase(self, bias: float) -> torch.Tensor:
        magnitude = torch.ones_like(self.problem.point.detach())
        direction = self.field(magnitude, bias)
        for _ in range(self.cfg.inner_steps):
            self.optimizer.zero_grad()
            loss = self.problem()
            loss.backward()
            self.optimizer.step(direction)
        value = float(self.problem().detach())
        if not self.log or value < min(v for _, v in self.log):
            self.best = copy.deepcopy(self.problem.state_dict())
        self.log.append((bias, value))
        return direction

    def run(self) -> Dict[str, torch.Tensor]:
        directions = {}
        for phase in range(self.cfg.phases):
            bias = self.cfg.bias(phase)
            directions[f"p{phase}"] = self.run_phase(bias)
            logger.debug("phase %d bias %r", phase, bias)
        return directions


def mirrored_pair(cfg: RampConfig) -> Tuple[RampConfig, RampConfig]:
    """The same experiment from above and from below zero."""
    flat = cfg.with_(stop=0.0, phases=2)
    return flat.with_(start=0.0), flat.with_(start=-0.0, stop=-0.0)


def compare_sides(base: RampConfig, field: Any) -> Dict[str, float]:
    results: Dict[str, float] = {}
    pair = mirrored_pair(base)
    for tag, cfg in zip(("above", "below"), pair):
        twin = Experiment(cfg, dim=3)
        twin.field = field
        twin.run()
        results[tag] = twin.log[-1][1]
        print(tag, f"start={cfg.start!r}", f"loss={results[tag]:.5f}")
    print("sides", [math.copysign(1.0, c.start) for c in pair])
    return results


def main() -> None:
    torch.manual_seed(0)
    base = RampConfig(extra={"note": "ramp"})
    shared = torch.compile(direction_field, backend=base.backend)
    results = compare_sides(base, shared)
    exp = Experiment(base)
    exp.field = shared
    print(summarize(exp.run()))
    for bias, value in exp.log:
        print(f"bias {bias:+.3f} loss {value:.5f}")
    if not results["above"] < results["below"]:
        raise AssertionError(f"approach from below must climb: {results}")


if __name__ == "__main__":
    main()
