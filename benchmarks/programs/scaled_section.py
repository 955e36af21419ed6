"""Training step whose section context is optional (profiling or none)."""
import contextlib
import json
import time
from typing import Callable, Optional, Protocol

import torch
from torch import nn


class Section(Protocol):
    def __call__(self, factor: float) -> "contextlib.AbstractContextManager[float]":
        ...


class Timed:
    """Times a section, hands the factor through."""

    def __init__(self, factor: float):
        self.factor = factor
        self.elapsed = None

    def __enter__(self) -> float:
        self.start = time.perf_counter()
        return self.factor

    def __exit__(self, *exc):
        self.elapsed = time.perf_counter() - self.start
        return False


def pick_section(profile: bool) -> Section:
    return Timed if profile else contextlib.nullcontext


DEFAULTS = json.loads('{"profile": false, "factor": 4.0, "hidden": 8, "steps": 3}')


class Classifier(nn.Module):
    def __init__(self, hidden: int, classes: int = 3):
        super().__init__()
        self.inp = nn.Linear(5, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.out(self.norm(torch.relu(self.inp(x))))


class ScaledLoss(nn.Module):
    def __init__(self, net: nn.Module, factor: float):
        super().__init__()
        self.net = net
        self.factor = factor
        self.ce = nn.CrossEntropyLoss()

    def forward(self, x, y):
        logits = self.net(x)
        with contextlib.nullcontext(self.factor) as factor:
            loss = self.ce(logits, y)
            loss = loss * factor
        return loss


def make_step(model: ScaledLoss, opt, compile_fn: Optional[Callable] = None):
    fn = compile_fn(model) if compile_fn else model

    def step(x, y):
        opt.zero_grad()
        loss = fn(x, y)
        loss.backward()
        for p in model.parameters():
            p.grad.div_(model.factor)
        opt.step()
        return loss.item() / model.factor

    return step


def run(compile_fn=None, cfg=DEFAULTS):
    torch.manual_seed(4)
    model = ScaledLoss(Classifier(cfg["hidden"]), cfg["factor"])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    step = make_step(model, opt, compile_fn)
    x = torch.randn(12, 5)
    y = torch.arange(12) % 3
    with pick_section(cfg["profile"])(1.0):
        return [step(x, y) for _ in range(cfg["steps"])]


eager = run()
print("eager losses", [round(v, 4) for v in eager])
compiled = run(lambda m: torch.compile(m, backend="eager"))
print("compiled losses", [round(v, 4) for v in compiled])
assert all(abs(a - b) < 1e-4 for a, b in zip(eager, compiled))
