"""Reduce a stream of heterogeneous events to one feature vector."""
import operator
from functools import reduce
from itertools import islice

import torch
from torch import nn


def event_source(seed=7):
    g = torch.Generator().manual_seed(seed)
    kinds = ("click", "view", "buy")
    k = 0
    while True:
        kind = kinds[k % len(kinds)]
        value = torch.rand(4, generator=g)
        event = {"kind": kind, "value": value}
        if kind == "buy":
            event["price"] = 1.5 + k
        yield event
        k += 1


class Handlers(nn.Module):
    def __init__(self):
        super().__init__()
        self.click = nn.Linear(4, 3)
        self.view = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
        self.buy = nn.Bilinear(4, 1, 3)


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.handlers = Handlers()
        self.fallback = nn.Parameter(torch.zeros(3))

    def route(self, event):
        match event:
            case {"kind": "buy", "value": value, "price": price}:
                return self.handlers.buy(value, value.new_full((1,), price))
            case {"kind": "view", "value": value}:
                return self.handlers.view(value)
            case {"kind": "click", "value": value}:
                return self.handlers.click(value)
            case _:
                return self.fallback

    def forward(self, events):
        parts = [self.route(e) for e in events]
        return reduce(operator.add, parts) / len(parts)


class RunningStat:
    __slots__ = ("count", "mean")

    def __init__(self):
        self.count = 0
        self.mean = None

    def update(self, v):
        self.count += 1
        if self.mean is None:
            self.mean = v.detach().clone()
        else:
            self.mean += (v.detach() - self.mean) / self.count


def evaluate(model, batches=2, size=3):
    stat = RunningStat()
    src = event_source()
    for _ in range(batches):
        stat.update(model(list(islice(src, size))))
    return stat


torch.manual_seed(0)
router = Router()
baseline = evaluate(router)
print("eager", baseline.mean, "after", baseline.count)
optimized = evaluate(torch.compile(router, backend="eager"))
print("compiled", optimized.mean)
assert torch.allclose(baseline.mean, optimized.mean)
