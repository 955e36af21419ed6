# torch: 2.8.0
"""Feature pipelines: a stage list yields ordered columns which a model consumes.

Two layouts with the same columns in another order need a permutation before
weights can be shared.
"""
import math
from collections import OrderedDict
from enum import Enum, auto

import torch


class Kind(Enum):
    RAW = auto()
    LOG = auto()
    SQUARE = auto()


def apply_kind(kind, v):
    if kind is Kind.LOG:
        return torch.log1p(v.abs())
    if kind is Kind.SQUARE:
        return v * v
    return v


class Stage:
    registry = {}

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Stage.registry[cls.__name__] = cls

    def __init__(self, *columns):
        self.columns = columns

    def layout(self):
        return OrderedDict((f"{c}_{self.kind.name.lower()}", self.kind) for c in self.columns)


class Raw(Stage):
    kind = Kind.RAW


class Log(Stage):
    kind = Kind.LOG


class Square(Stage):
    kind = Kind.SQUARE


def merge(stages):
    out = OrderedDict()
    for s in stages:
        for k, v in s.layout().items():
            out[k] = v
    return out


class LinearScorer:
    def __init__(self, layout):
        self.layout = layout
        n = len(layout)
        self.weight = torch.tensor([math.cos(i) for i in range(n)])

    def features(self, data, layout):
        cols = []
        for name, kind in layout.items():
            cols.append(apply_kind(kind, data[name.split("_")[0]]))
        return torch.stack(cols, dim=1)

    def permutation(self, layout):
        order = list(layout)
        return [order.index(n) for n in self.layout]

    def __call__(self, data, layout):
        feats = self.features(data, layout)
        if layout == self.layout:
            return feats @ self.weight
        return feats[:, self.permutation(layout)] @ self.weight


def score_all(scorer, data, specs):
    rows = []
    for stages in specs:
        rows.append(scorer(data, merge(stages)))
    return torch.stack(rows)


def table(n):
    t = torch.arange(1, n + 1, dtype=torch.float32)
    return {"speed": t.sqrt(), "load": t / n, "temp": 20 + torch.sin(t)}


def main():
    data = table(7)
    base = [Stage.registry["Raw"]("speed", "load"), Stage.registry["Log"]("temp")]
    swapped = [Log("temp"), Raw("load", "speed")]
    scorer = LinearScorer(merge(base))
    compiled = torch.compile(score_all, backend="eager")
    scores = compiled(scorer, data, [base, swapped])
    for label, row in zip(("base", "swapped"), scores):
        print(f"{label:8s}", " ".join(f"{v:8.4f}" for v in row.tolist()))
    spread = (scores[0] - scores[1]).abs().max().item()
    print(f"largest gap {spread:.5f}")


if __name__ == "__main__":
    main()
