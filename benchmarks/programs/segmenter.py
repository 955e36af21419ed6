# torch: 2.13.0
"""Weighted pixel classifier with a guard that skips broken gradients."""
import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn


class ClassWeights:
    """Weights from pixel counts; ignored classes weigh nothing."""

    def __init__(self, counts, ignored=()):
        self.counts = counts
        self.ignored = set(ignored)

    def tensor(self):
        total = sum(self.counts)
        values = []
        for k, count in enumerate(self.counts):
            values.append(0.0 if k in self.ignored else total / (count * len(self.counts)))
        return torch.tensor(values)


class PixelHead(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(classes))
        self.scale = nn.Parameter(torch.ones(classes))

    def forward(self, x):
        return x * self.scale + self.bias


def tile_loss(scores, labels, weight):
    return F.nll_loss(scores, labels, weight=weight)


class GradientGuard:
    def __init__(self, params):
        self.params = list(params)
        self.masked = 0

    def clean(self):
        for p in self.params:
            bad = ~torch.isfinite(p.grad)
            self.masked += int(bad.sum())
            p.grad.masked_fill_(bad, 0.0)


@contextlib.contextmanager
def epoch(opt, log):
    opt.zero_grad()
    start = len(log)
    yield
    opt.step()
    assert len(log) > start


def tiles(gen, classes):
    plan = [[0, 2, 0, 2], [1, 1], [2, 2, 0]]
    for labels in plan:
        x = torch.randn(len(labels), classes, generator=gen)
        yield x, torch.tensor(labels)


class Session:
    def __init__(self, loss_fn, classes=4):
        self.loss_fn = loss_fn
        self.head = PixelHead(classes)
        self.weights = ClassWeights([40, 5, 30, 25], ignored=[1]).tensor()
        self.opt = torch.optim.SGD(self.head.parameters(), lr=0.1)
        self.guard = GradientGuard(self.head.parameters())
        self.log = []

    def run(self, data):
        for x, labels in data:
            with epoch(self.opt, self.log):
                loss = self.loss_fn(self.head(x), labels, self.weights)
                loss.backward()
                self.guard.clean()
                self.log.append(loss.item())
        return self.log


def main():
    gen = torch.Generator().manual_seed(5)
    loss_fn = torch.compile(tile_loss, backend="aot_eager_decomp_partition")
    session = Session(loss_fn)
    log = session.run(tiles(gen, 4))
    finite = [v for v in log if not math.isnan(v)]
    print("losses", log, "masked", session.guard.masked)
    assert len(finite) == 2
    assert torch.isfinite(session.head.bias).all()
    ignored = len(session.weights) - int(session.weights.count_nonzero())
    allowed = ignored * len(session.guard.params)
    if session.guard.masked > allowed:
        raise RuntimeError(f"{session.guard.masked} gradients masked, at most {allowed} may be")


if __name__ == "__main__":
    main()
