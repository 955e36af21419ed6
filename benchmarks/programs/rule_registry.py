# torch: 2.13.0
"""Validation rules for incoming feature batches.  Rules are declared in a small
registry; each factory returns a class whose instances live for one batch."""
import enum
import functools
import json
import logging
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Callable, Dict, List, Type

import torch
import torch.nn as nn

logger = logging.getLogger("rules")


class Severity(enum.IntEnum):
    INFO = 1
    WARN = 2
    FATAL = 3


@dataclass
class RuleSpec:
    name: str
    severity: Severity = Severity.WARN
    limit: float = 1.0
    options: Dict[str, float] = field(default_factory=dict)

    def describe(self) -> str:
        return f"{self.name}[{self.severity.name.lower()}] limit={self.limit:.2f}"


class Registry:
    def __init__(self) -> None:
        self._factories: Dict[str, Callable[[RuleSpec], Type]] = {}

    def register(self, name: str):
        def deco(factory):
            if name in self._factories:
                raise KeyError(f"duplicate rule {name!r}")
            self._factories[name] = factory
            return factory

        return deco

    def build(self, spec: RuleSpec) -> Type:
        return self._factories[spec.name](spec)

    def names(self) -> List[str]:
        return sorted(self._factories)


registry = Registry()
STATS: Dict[str, Dict[str, int]] = {}


@registry.register("clip")
def clip_factory(spec: RuleSpec) -> Type:
    counters = STATS.setdefault("clip", {"applied": 0, "rows": 0})
    bound = spec.limit

    class ClipRule:
        severity = spec.severity

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def apply(self, batch: torch.Tensor) -> torch.Tensor:
            counters["applied"] += 1
            counters["rows"] += batch.shape[0]
            return batch.clamp(-bound * self.scale, bound * self.scale)

    return ClipRule


@registry.register("center")
def center_factory(spec: RuleSpec) -> Type:
    class CenterRule:
        severity = spec.severity

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def apply(self, batch: torch.Tensor) -> torch.Tensor:
            return batch - self.scale * batch.mean(dim=0, keepdim=True)

    return CenterRule


class Encoder(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Pipeline:
    def __init__(self, specs: List[RuleSpec], encoder: Encoder) -> None:
        self.specs = specs
        self.rules = [registry.build(s) for s in specs]
        self.encoder = encoder

    def run(self, batch: torch.Tensor, scale: float) -> torch.Tensor:
        for rule_cls in self.rules:
            rule = rule_cls(scale)
            batch = rule.apply(batch)
        return self.encoder(batch)


@contextmanager
def section(title: str):
    print(f"--- {title}")
    try:
        yield
    finally:
        logger.debug("left %s", title)


def batches(count: int, rows: int, width: int):
    gen = torch.Generator().manual_seed(5)
    for i in range(count):
        yield torch.randn(rows, width, generator=gen) * (1 + i)


@functools.lru_cache(maxsize=None)
def default_specs() -> tuple:
    return (
        RuleSpec("center", Severity.INFO, limit=0.5),
        RuleSpec("clip", Severity.FATAL, limit=1.5, options={"soft": 0.0}),
    )


def main() -> int:
    torch.manual_seed(0)
    specs = list(default_specs())
    with section("rules"):
        for spec in specs:
            print(spec.describe())
        print("known:", ", ".join(registry.names()))
        print(json.dumps(asdict(specs[1])["options"]))
    pipeline = Pipeline(specs, Encoder(4, 8))
    run = torch.compile(pipeline.run, backend="eager")
    outputs = []
    with section("batches"), torch.no_grad():
        for batch in batches(3, 5, 4):
            out = run(batch, 1.0)
            outputs.append(out)
            print([round(v, 3) for v in out.mean(0).tolist()])
    with section("statistics"):
        stats = STATS["clip"]
        print(f"clip applied {stats['applied']} times on {stats['rows']} rows")
        if stats["applied"] != len(outputs):
            raise RuntimeError(f"clip rule counted {stats['applied']} of {len(outputs)} batches")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
