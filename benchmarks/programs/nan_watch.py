# torch: 2.8.0
'''Trainer with a divergence watch: a loss which was seen as "bad" before is skipped.'''
import collections
import json
import logging
import math
from pathlib import PurePosixPath

import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

log = logging.getLogger("trainer")

DEFAULTS = {
    "model": {"hidden": 12, "depth": 2, "dropout": 0.0},
    "optim": {"lr": 3e-2, "warmup": 2, "betas": (0.9, 0.95)},
    "data": {"n": 24, "batch": 8, "features": 5},
    "out": "/tmp/none/run-7",
}


class Config(dict):
    """dict with attribute access"""

    def __getattr__(self, name):
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        return Config(value) if isinstance(value, dict) else value


class Swish(torch.nn.Module):
    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = torch.nn.Parameter(torch.tensor(beta))

    def forward(self, x):
        return x * torch.sigmoid(self.beta * x)


def mlp(sizes, drop):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(a, b), Swish(), torch.nn.Dropout(drop)]
    return torch.nn.Sequential(*layers[:-2])


class Regressor(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        sizes = [cfg.data.features] + [cfg.model.hidden] * cfg.model.depth + [1]
        self.net = mlp(sizes, cfg.model.dropout)
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.net(x).squeeze(-1) * self.scale


class Watch:
    sentinel = float("nan")

    def __init__(self, limit=3):
        self.limit = limit
        self.bad = [self.sentinel, math.inf]
        self.history = collections.deque(maxlen=16)

    def note(self, value):
        self.history.append(value)
        return len(self.history)

    def known(self, value):
        return value in self.bad


class Objective:
    def __init__(self, model, watch, l2=1e-3):
        self.model, self.watch, self.l2 = model, watch, l2

    def penalty(self):
        return sum(p.pow(2).sum() for p in self.model.parameters()) * self.l2

    def __call__(self, x, y, marker):
        pred = self.model(x)
        loss = F.smooth_l1_loss(pred, y, reduction="none")
        if self.watch.known(marker):
            loss = loss.clamp(max=0.05)
        return loss.mean() + self.penalty(), pred.detach()


def dataset(cfg, gen):
    x = torch.randn(cfg.data.n, cfg.data.features, generator=gen)
    y = x.sum(1) + 3.0
    return [(x[i:i + cfg.data.batch], y[i:i + cfg.data.batch]) for i in range(0, cfg.data.n, cfg.data.batch)]


def warm(cfg):
    def factor(step):
        return min(1.0, (step + 1) / cfg.optim.warmup)
    return factor


def train(cfg):
    gen = torch.Generator().manual_seed(11)
    torch.manual_seed(1)
    model = Regressor(cfg)
    watch = Watch()
    objective = torch.compile(Objective(model, watch).__call__, backend="eager")
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.optim.lr, betas=cfg.optim.betas)
    sched = LambdaLR(opt, warm(cfg))
    curve = []
    for epoch in range(2):
        for x, y in dataset(cfg, gen):
            opt.zero_grad(set_to_none=True)
            loss, _ = objective(x, y, Watch.sentinel)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            curve.append(round(loss.item(), 4))
            watch.note(loss.item())
        log.info("epoch %d lr %.4f", epoch, sched.get_last_lr()[0])
    return curve


def main():
    cfg = Config(json.loads(json.dumps(DEFAULTS)))
    logging.basicConfig(level=logging.WARNING)
    curve = train(cfg)
    where = PurePosixPath(cfg.out) / "curve.json"
    print(where.name, json.dumps(curve))


main()
