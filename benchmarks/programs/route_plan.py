# torch: 2.8.0
"""Routes requests through stages that a plan describes; plans come as JSON and are applied inside the compiled model."""
from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator

import torch
from torch import Tensor, nn

log = logging.getLogger("router")

PLANS = """
{"fast": {"scale": [2, 1, 3]}, "wide": {"shift": [1]}, "deep": {"scale": [3]}}
"""


@dataclass
class Request:
    name: str
    payload: Tensor
    tags: dict[str, str] = field(default_factory=dict)
    created: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        return self.payload.numel()


class Meter:
    def __init__(self) -> None:
        self.counts: dict[str, int] = defaultdict(int)
        self.total = 0.0

    def note(self, name: str, value: float) -> None:
        self.counts[name] += 1
        self.total += value

    def summary(self) -> str:
        return ", ".join(f"{name}={count}" for name, count in sorted(self.counts.items())) + f" total={self.total:.3f}"


class Normalizer(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("eps", torch.tensor(eps))

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + self.eps).sqrt() * self.gain


class Projector(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(x)))


class Router(nn.Module):
    """Applies the steps of a plan between two projections."""

    def __init__(self, width: int, plans: dict[str, Any]) -> None:
        super().__init__()
        self.plans = plans
        self.before, self.after = Projector(width, 2 * width), Projector(width, width)
        self.norm = Normalizer(width)
        self.active = "fast"

    def choose(self, name: str) -> None:
        if name not in self.plans:
            raise KeyError(name)
        self.active = name

    def apply_plan(self, x: Tensor) -> Tensor:
        match self.plans[self.active]:
            case {"scale": [first, *rest]}:
                return x * first + len(rest)
            case {"shift": [amount]}:
                return x + amount
            case _:
                return x

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.before(x))
        return self.after(self.apply_plan(hidden))


def requests(count: int, width: int, names: Iterable[str]) -> Iterator[Request]:
    generator = torch.Generator().manual_seed(11)
    for index, name in zip(range(count), names):
        yield Request(name, torch.rand(4, width, generator=generator), {"index": str(index)})


class Service:
    def __init__(self, router: Router) -> None:
        self.router = router
        self.fast = torch.compile(router, backend="eager")
        self.meter = Meter()

    def serve(self, request: Request) -> Tensor:
        self.router.choose(request.name)
        with torch.no_grad():
            answer = self.fast(request.payload)
        self.meter.note(request.name, float(answer.mean()))
        log.debug("%s took %.1f ms", request.name, 1e3 * (time.monotonic() - request.created))
        return answer


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(3)
    service = Service(Router(6, json.loads(PLANS)).eval())
    for request in requests(3, 6, ["wide", "fast", "deep"]):
        answer = service.serve(request)
        log.info("%s of %d values: %s", request.name, request.size, answer.norm())
    print(service.meter.summary())


if __name__ == "__main__":
    main()
