# torch: 2.13.0
"""Activation statistics for post-training quantisation.

1. warm up the (compiled) model, so that compile time isn't measured
2. attach observers to all layers whose inputs get quantised
3. run the calibration set
4. turn the observed ranges into scales and zero points
"""
import contextlib
import fnmatch
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import Dict, Iterator, List, Optional, Tuple, Type

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Observer(ABC):
    name = "observer"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, module: nn.Module, args: Tuple, out: torch.Tensor) -> None:
        self.calls += 1
        self.update(out.detach())

    @abstractmethod
    def update(self, x: torch.Tensor) -> None: ...

    @abstractmethod
    def range(self) -> Optional[Tuple[float, float]]: ...


class MinMax(Observer):
    name = "minmax"

    def __init__(self) -> None:
        super().__init__()
        self.lo: Optional[float] = None
        self.hi: Optional[float] = None

    def update(self, x: torch.Tensor) -> None:
        lo, hi = float(x.min()), float(x.max())
        self.lo = lo if self.lo is None else min(lo, self.lo)
        self.hi = hi if self.hi is None else max(hi, self.hi)

    def range(self):
        return None if self.lo is None else (self.lo, self.hi)


class MovingAverage(MinMax):
    name = "ema"
    momentum = 0.9

    def update(self, x: torch.Tensor) -> None:
        lo, hi = float(x.min()), float(x.max())
        if self.lo is None:
            self.lo, self.hi = lo, hi
        else:
            self.lo += (1 - self.momentum) * (lo - self.lo)
            self.hi += (1 - self.momentum) * (hi - self.hi)


OBSERVERS: Dict[str, Type[Observer]] = {c.name: c for c in (MinMax, MovingAverage)}


class SqueezeExcite(nn.Module):
    def __init__(self, ch: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(ch, max(1, ch // 2), 1)
        self.fc2 = nn.Conv2d(max(1, ch // 2), ch, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.fc2(torch.relu(self.fc1(s))))


class Block(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.act = nn.ReLU6()
        self.se = SqueezeExcite(cout)

    def forward(self, x):
        return self.se(self.act(self.bn(self.conv(x))))


class TinyNet(nn.Module):
    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.stem = Block(1, 3, stride=2)
        self.body = nn.Sequential(Block(3, 4), Block(4, 4))
        self.head = nn.Linear(4, classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was)


class Calibrator:
    def __init__(self, model: nn.Module, pattern: str, observer: str = "minmax") -> None:
        self.model = model
        self.pattern = re.compile(fnmatch.translate(pattern))
        self.cls = OBSERVERS[observer]
        self.observers: Dict[str, Observer] = {}
        self.handles: List = []

    def attach(self) -> None:
        for name, mod in self.model.named_modules():
            if self.pattern.match(name):
                obs = self.cls()
                self.observers[name] = obs
                self.handles.append(mod.register_forward_hook(obs))

    def detach(self) -> None:
        while self.handles:
            self.handles.pop().remove()

    def __enter__(self) -> "Calibrator":
        self.attach()
        return self

    def __exit__(self, *exc) -> None:
        self.detach()


def qparams(lo: float, hi: float, bits: int = 8) -> Tuple[float, int]:
    lo, hi = min(lo, 0.0), max(hi, 0.0)
    scale = max(hi - lo, 1e-8) / (2 ** bits - 1)
    return scale, int(round(-lo / scale))


def images(n: int) -> DataLoader:
    x = torch.randn(n, 1, 8, 8)
    return DataLoader(TensorDataset(x, torch.arange(n) % 3), batch_size=2)


def main() -> int:
    model = TinyNet()
    runner = torch.compile(model, backend="eager")
    hits = defaultdict(int)
    with evaluating(model):
        runner(next(iter(images(2)))[0])            # 1. warm up
        with Calibrator(model, "*.act") as cal:     # 2. observers
            for x, label in images(4):              # 3. calibration
                for guess, truth in zip(runner(x).argmax(1), label):
                    hits[bool(guess == truth)] += 1
    blind = []
    for name, obs in cal.observers.items():         # 4. scales
        found = obs.range()
        if found is None:
            blind.append(name)
            continue
        scale, zero = qparams(*found)
        print(f"{name:<12} calls {obs.calls} range [{found[0]:.3f}, {found[1]:.3f}] zero {zero}")
    print(f"{sum(hits.values())} images seen")
    if blind:
        print("no statistics for:", ", ".join(blind))
    return 1 if blind else 0


if __name__ == "__main__":
    raise SystemExit(main())
