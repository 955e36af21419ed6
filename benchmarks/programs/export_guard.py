# torch: 2.8.0 2.13.0
"""Metrics exporter with fallback: tensors still attached to the graph are counted as leaks."""
import logging
from collections import OrderedDict

import numpy as np
import torch

logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
log = logging.getLogger(__name__)


class Sink:
    def __init__(self):
        self.series = OrderedDict()
        self.leaks = []

    def push(self, name, value):
        self.series.setdefault(name, []).append(round(float(value), 4))


def as_row(t):
    """host copy of a metric vector"""
    return t.numpy() * 1.0


compiled_as_row = torch.compile(as_row, backend="eager")


class MetricsMixin:
    sink: Sink

    def emit(self, name, t):
        try:
            row = compiled_as_row(t)
        except RuntimeError:
            self.sink.leaks.append(name)
            row = compiled_as_row(t.detach())
        for i, v in enumerate(row):
            self.sink.push(f"{name}.{i}", v)


class KalmanLayer(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.log_q = torch.nn.Parameter(torch.full((n,), -1.0))
        self.log_r = torch.nn.Parameter(torch.zeros(n))

    def forward(self, zs):
        x = torch.zeros_like(zs[0])
        p = torch.ones_like(zs[0])
        preds = []
        for z in zs:
            preds.append(x)
            p = p + self.log_q.exp()
            k = p / (p + self.log_r.exp())
            x = x + k * (z - x)
            p = (1 - k) * p
        return torch.stack(preds), k


class Runner(MetricsMixin):
    def __init__(self, n=3):
        self.model = KalmanLayer(n)
        self.sink = Sink()
        self.opt = torch.optim.RMSprop(self.model.parameters(), lr=0.02)

    def step(self, zs):
        preds, gain = self.model(zs)
        loss = (preds - zs).square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.emit("loss", loss.detach().view(1))
        self.emit("gain", gain)
        return loss.item()


def series(steps, n):
    rng = np.random.default_rng(8)
    walk = rng.normal(size=(steps, n)).cumsum(0)
    return torch.from_numpy(walk.astype(np.float32))


def main():
    torch.manual_seed(0)
    runner = Runner()
    zs = series(12, 3)
    for epoch in range(3):
        runner.step(zs)
    for name, values in runner.sink.series.items():
        print(name, ["%.2f" % v for v in values])
    print("leaks", runner.sink.leaks)


if __name__ == "__main__":
    main()
