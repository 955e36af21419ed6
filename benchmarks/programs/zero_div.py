# torch: 2.8.0
"""Threshold sweep for a fraud detector: precision / recall / F-beta per segment."""
import random
from abc import ABC, abstractmethod
from typing import Iterable, List, Optional

import torch


class Metric(ABC):
    registry: List["Metric"] = []

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Metric.registry.append(cls())

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    @abstractmethod
    def __call__(self, tp: int, fp: int, fn: int, tn: int) -> float:
        ...


class Precision(Metric):
    def __call__(self, tp, fp, fn, tn):
        try:
            return tp / (tp + fp)
        except ZeroDivisionError:
            return 0.0


class Recall(Metric):
    def __call__(self, tp, fp, fn, tn):
        try:
            return tp / (tp + fn)
        except ZeroDivisionError:
            return 0.0


class Accuracy(Metric):
    def __call__(self, tp, fp, fn, tn):
        return (tp + tn) / max(1, tp + fp + fn + tn)


class Segment:
    """A group of transactions with features and labels."""

    def __init__(self, label: str, x: torch.Tensor, y: torch.Tensor):
        self.label, self.x, self.y = label, x, y

    def __len__(self):
        return len(self.y)

    def __repr__(self):
        return f"Segment({self.label!r}, n={len(self)}, fraud={int(self.y.sum())})"

    def confusion(self, flagged: torch.Tensor):
        y = self.y.bool()
        tp = int((flagged & y).sum())
        fp = int((flagged & ~y).sum())
        fn = int((~flagged & y).sum())
        return tp, fp, fn, len(self) - tp - fp - fn


def generate(label: str, n: int, rate: float, rng: random.Random) -> Segment:
    xs, ys = [], []
    for _ in range(n):
        fraud = rng.random() < rate
        amount = rng.lognormvariate(1.5 if fraud else 0.5, 0.4)
        hour = rng.randrange(24)
        xs.append([amount, hour / 24.0, rng.random() + 0.5 * fraud])
        ys.append(float(fraud))
    return Segment(label, torch.tensor(xs), torch.tensor(ys))


class LogisticModel:
    def __init__(self, dim: int, lr: float = 0.5):
        self.w = torch.zeros(dim, requires_grad=True)
        self.b = torch.zeros((), requires_grad=True)
        self.lr = lr

    def score(self, x):
        return torch.sigmoid(x @ self.w + self.b)

    def fit(self, segs: Iterable[Segment], steps: int = 60):
        x = torch.cat([s.x for s in segs])
        y = torch.cat([s.y for s in segs])
        for _ in range(steps):
            loss = torch.nn.functional.binary_cross_entropy(self.score(x), y)
            gw, gb = torch.autograd.grad(loss, (self.w, self.b))
            with torch.no_grad():
                self.w -= self.lr * gw
                self.b -= self.lr * gb
        return loss.item()


def summarise(scores: torch.Tensor, counts, weight: Optional[float] = 0.5):
    """Metric values of one operating point and a confidence-weighted utility."""
    values = {m.name: m(*counts) for m in Metric.registry}
    margin = (scores - 0.5).abs()
    utility = margin * (weight * values["precision"] + (1 - weight) * values["recall"])
    return utility.mean(), values


summarise_fast = torch.compile(summarise, backend="eager")


def sweep(model: LogisticModel, seg: Segment, thresholds):
    with torch.no_grad():
        scores = model.score(seg.x)
        for t in thresholds:
            utility, values = summarise_fast(scores, seg.confusion(scores > t))
            yield t, utility.item(), values


if __name__ == "__main__":
    rng = random.Random(99)
    segments = [
        generate("retail", 60, 0.25, rng),
        generate("travel", 40, 0.4, rng),
        generate("payroll", 25, 0.0, rng),
    ]
    model = LogisticModel(3)
    print("train loss", round(model.fit(segments[:2]), 4))
    best = {}
    for seg in segments:
        print(seg)
        for t, u, vals in sweep(model, seg, (0.3, 0.5, 0.95)):
            row = " ".join(f"{k}={v:.3f}" for k, v in sorted(vals.items()))
            print(f"  t={t:.2f} utility={u:.4f} {row}")
            if u > best.get(seg.label, (0, 0))[1]:
                best[seg.label] = (t, u)
    print("operating points", {k: v[0] for k, v in best.items()})
