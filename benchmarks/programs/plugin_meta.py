# torch: 2.8.0 2.13.0
"""Feature transform pipeline: every transform class is built through a registering metaclass."""
import argparse
import logging
from dataclasses import dataclass, field
from typing import Dict, List

import torch
import torch.nn as nn

log = logging.getLogger("plugins")


class PluginMeta(type):
    """Registers classes by name and stamps each instance with a build number."""

    registry: Dict[str, type] = {}

    def __new__(mcls, name, bases, ns, **kw):
        cls = super().__new__(mcls, name, bases, ns)
        if bases:
            PluginMeta.registry[name.lower()] = cls
        return cls

    def __call__(cls, *args, **kwargs):
        obj = super().__call__(*args, **kwargs)
        obj.gain = obj.gain * cls.calibration
        obj.ready = True
        return obj


class Transform(metaclass=PluginMeta):
    calibration = 1.0
    ready = False

    def __init__(self, gain=1.0):
        self.gain = gain

    def run(self, x):
        raise NotImplementedError


class Scale(Transform):
    calibration = 0.5

    def run(self, x):
        return x * self.gain


class Shift(Transform):
    calibration = 2.0

    def run(self, x):
        return x + self.gain


class Square(Transform):
    def run(self, x):
        return x * x * self.gain


@dataclass
class Stage:
    name: str
    gain: float = 1.0


@dataclass
class PipelineConfig:
    stages: List[Stage] = field(default_factory=list)
    hidden: int = 4

    @classmethod
    def parse(cls, text):
        stages = []
        for part in text.split(","):
            name, _, gain = part.partition(":")
            stages.append(Stage(name.strip(), float(gain or 1.0)))
        return cls(stages)


class Head(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Pipeline:
    def __init__(self, cfg, dim):
        self.cfg = cfg
        self.head = Head(dim, cfg.hidden)
        self.step_count = 0

    @torch.compile(backend="eager")
    def features(self, x):
        for stage in self.cfg.stages:
            t = PluginMeta.registry[stage.name](stage.gain)
            x = t.run(x)
        return x

    def fit(self, x, y, epochs, lr):
        opt = torch.optim.SGD(self.head.parameters(), lr=lr)
        losses = []
        for epoch in range(epochs):
            feats = self.features(x)
            loss = (self.head(feats) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            self.step_count += 1
            losses.append(loss.item())
            log.debug("epoch %d loss %.4f", epoch, losses[-1])
        return losses


def main(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--stages", default="scale:2,shift:0.25,square")
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--lr", type=float, default=0.05)
    args = ap.parse_args(argv)
    torch.manual_seed(7)
    x = torch.linspace(-1, 1, 24).view(8, 3)
    y = x.sum(1)
    pipe = Pipeline(PipelineConfig.parse(args.stages), 3)
    losses = pipe.fit(x, y, args.epochs, args.lr)
    print("registered:", sorted(PluginMeta.registry))
    print("first features:", [round(v, 3) for v in pipe.features(x)[0].tolist()])
    print("steps", pipe.step_count, "losses fell", losses[-1] < losses[0])


if __name__ == "__main__":
    main()
