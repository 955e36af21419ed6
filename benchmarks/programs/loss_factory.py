# torch: 2.8.0
"""Loss terms are made by factories; the trainer logs each under its own name."""
import logging
import sys

import torch
import torch.nn as nn

log = logging.getLogger("trainer")


def setup_logging():
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def make_power(p):
    def power(pred, target):
        return (pred - target).abs().pow(p).mean()
    return power


def make_quantile(q):
    def pinball(pred, target):
        d = target - pred
        return torch.maximum(q * d, (q - 1) * d).mean()
    return pinball


def make_smooth():
    def smooth(pred, target):
        del target
        return (pred[1:] - pred[:-1]).pow(2).mean()
    return smooth


FACTORIES = [
    (make_power, (2,), 1.0),
    (make_quantile, (0.8,), 0.5),
    (make_smooth, (), 0.01),
]


class Regressor(nn.Module):
    def __init__(self, hidden=6):
        super().__init__()
        self.inp = nn.Linear(1, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x))).squeeze(-1)


class Meter:
    def __init__(self):
        self.sums = {}
        self.n = 0

    def update(self, terms):
        self.n += 1
        for name, value in terms.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)

    def average(self):
        return {k: v / self.n for k, v in self.sums.items()}


@torch.compile(backend="eager")
def objective(pred, target):
    terms = {}
    total = pred.new_zeros(())
    for factory, args, weight in FACTORIES:
        fn = factory(*args)
        value = fn(pred, target)
        terms[fn.__name__] = value.detach()
        total = total + weight * value
    return total, terms


def dataset(n):
    x = torch.linspace(-2, 2, n)[:, None]
    y = torch.sin(2 * x).squeeze(-1)
    return x, y


def batches(x, y, size):
    for i in range(0, len(x), size):
        yield x[i:i + size], y[i:i + size]


def train(epochs=3, size=8):
    torch.manual_seed(3)
    model = Regressor()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, y = dataset(32)
    for epoch in range(epochs):
        meter = Meter()
        for bx, by in batches(x, y, size):
            total, terms = objective(model(bx), by)
            opt.zero_grad()
            total.backward()
            opt.step()
            meter.update(terms)
        parts = " ".join(f"{k}={v:.4f}" for k, v in meter.average().items())
        log.info("epoch %d %s", epoch, parts)
    return model


if __name__ == "__main__":
    setup_logging()
    train()
