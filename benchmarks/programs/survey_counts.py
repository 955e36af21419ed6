# torch: 2.8.0
"""Survey tables: counting answers in numpy, weighting them in torch."""
import csv
import io

import numpy as np
import torch

RAW = """respondent,region,q1,q2,q3
1,north,3,4,1
2,south,2,4,5
3,north,5,5,2
4,east,1,2,2
5,south,4,3,3
6,east,3,1,4
7,north,2,2,5
"""

QUESTIONS = ("q1", "q2", "q3")


def load(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    regions = sorted({r["region"] for r in rows})
    answers = np.array([[int(r[q]) for q in QUESTIONS] for r in rows])
    codes = np.array([regions.index(r["region"]) for r in rows])
    return regions, answers, codes


def tabulate(answers, levels=5):
    table = np.zeros((answers.shape[1], levels), dtype=np.int64)
    for q in range(answers.shape[1]):
        for v in answers[:, q]:
            table[q, v - 1] += 1
    return table


@torch.compile(backend="eager")
def shares(table, n):
    freq = table / n
    levels = np.arange(1, table.shape[1] + 1)
    mean = (freq * levels).sum(axis=1)
    centred = levels[None, :] - mean[:, None]
    var = (freq * centred ** 2).sum(axis=1)
    return freq, mean, var


@torch.compile(backend="eager")
def region_effect(answers, codes, k):
    onehot = torch.nn.functional.one_hot(codes, k).to(torch.float64)
    size = onehot.sum(0)
    return (onehot.t() @ answers.to(torch.float64)) / size[:, None]


class Accumulator:
    """Compensated running sum, sensitive to the type of what it is fed."""

    def __init__(self):
        self.total = 0.0
        self.comp = 0.0

    def add(self, value):
        y = float(value) - self.comp
        t = self.total + y
        self.comp = (t - self.total) - y
        self.total = t

    @property
    def value(self):
        return self.total


def main():
    regions, answers, codes = load(RAW)
    table = tabulate(answers)
    n = len(answers)
    freq, mean, var = shares(table, n)
    for q, m, v in zip(QUESTIONS, mean, var):
        print(f"{q}: mean={float(m):.12f} var={float(v):.12f}")
    acc = Accumulator()
    for p in freq.ravel():
        acc.add(p)
    print("dtype", freq.dtype, "total", f"{acc.value:.15f}")
    effect = region_effect(torch.from_numpy(answers), torch.from_numpy(codes), len(regions))
    for name, row in zip(regions, effect.tolist()):
        print(f"{name:6}", " ".join(f"{c:.3f}" for c in row))


if __name__ == "__main__":
    main()
