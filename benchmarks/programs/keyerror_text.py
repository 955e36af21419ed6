# torch: 2.8.0
"""Feature-transform pipeline with a plugin registry and a soft error report."""
import argparse
import functools
import json
import logging
import sys
from typing import Callable, Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

log = logging.getLogger("pipeline")

REGISTRY: Dict[str, Callable] = {}


def register(name: str, *, aliases: Tuple[str, ...] = ()):
    def wrap(fn):
        for key in (name, *aliases):
            if key in REGISTRY:
                raise ValueError(f"{key} registered twice")
            REGISTRY[key] = fn
        return fn
    return wrap


@register("scale", aliases=("mul",))
def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


@register("center")
def center(x: Tensor) -> Tensor:
    return x - x.mean(dim=0, keepdim=True)


@register("whiten")
def whiten(x: Tensor, eps: float = 1e-3) -> Tensor:
    x = center(x)
    return x / (x.var(dim=0, keepdim=True, unbiased=False) + eps).sqrt()


@register("clip")
def clip(x: Tensor, low: float = -1.5, high: float = 1.5) -> Tensor:
    return x.clamp(low, high)


@register("poly")
def poly(x: Tensor, degree: int = 2) -> Tensor:
    return torch.cat([x ** d for d in range(1, degree + 1)], dim=1)


class Step(NamedTuple):
    name: str
    kwargs: dict = {}
    optional: bool = True

    @classmethod
    def parse(cls, raw) -> "Step":
        if isinstance(raw, str):
            return cls(raw)
        return cls(raw["name"], raw.get("kwargs", {}), raw.get("optional", True))


class StepReport(NamedTuple):
    step: str
    ok: bool
    detail: str


DEFAULT = json.dumps([
    "center",
    {"name": "mul", "kwargs": {"factor": 0.5}},
    "fourier",
    {"name": "poly", "kwargs": {"degree": 3}},
    "clip",
    {"name": "rotate", "kwargs": {"angle": 30}},
])


def lookup(name: str):
    return REGISTRY[name]


@torch.compile(backend="eager")
def apply_step(x: Tensor, step: Step):
    """Run one step; unknown optional steps are reported and skipped."""
    try:
        fn = lookup(step.name)
    except KeyError as err:
        if not step.optional:
            raise
        return x + 0.0, False, "no such transform: " + str(err)
    y = fn(x, **step.kwargs)
    return y, True, f"{tuple(x.shape)} -> {tuple(y.shape)}"


class Pipeline:
    def __init__(self, steps):
        self.steps = [Step.parse(s) for s in steps]
        self.reports = []

    def __len__(self):
        return len(self.steps)

    def __call__(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x, ok, detail = apply_step(x, step)
            self.reports.append(StepReport(step.name, ok, detail))
        return x

    @functools.cached_property
    def failed(self):
        return [r for r in self.reports if not r.ok]


def ridge(x: Tensor, y: Tensor, lam: float = 0.1) -> Tensor:
    gram = x.T @ x + lam * torch.eye(x.shape[1])
    return torch.linalg.solve(gram, x.T @ y)


def main(argv: Optional[list] = None) -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--rows", type=int, default=40)
    ap.add_argument("--steps", default=DEFAULT)
    ap.add_argument("--verbose", action="store_true")
    args = ap.parse_args(argv)
    logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING)

    gen = torch.Generator().manual_seed(3)
    x = torch.randn(args.rows, 3, generator=gen)
    y = (x[:, 0] ** 2 - x[:, 1]).unsqueeze(1)

    pipe = Pipeline(json.loads(args.steps))
    feats = pipe(x)
    log.info("features %s", feats.shape)
    w = ridge(feats, y)
    mse = (feats @ w - y).square().mean().item()
    print(f"{len(pipe)} steps, {feats.shape[1]} features, mse {mse:.4f}")
    for r in pipe.reports:
        print(f"  {'ok ' if r.ok else 'ERR'} {r.step:<8} {r.detail}")
    print("failed:", [r.step for r in pipe.failed])
    return 0


if __name__ == "__main__":
    sys.exit(main([]))
