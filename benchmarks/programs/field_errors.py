# torch: 2.8.0
"""Table validation with typed errors, followed by a small least squares fit."""
import collections

import torch

Field = collections.namedtuple("Field", "name kind low high")

SCHEMA = [
    Field("height", "float", 0.0, 2.5),
    Field("weight", "float", 0.0, 300.0),
    Field("age", "int", 0, 120),
]


class Report:
    def __init__(self):
        self.lines = []
        self.counts = collections.Counter()

    def add(self, kind, text):
        self.counts[kind] += 1
        self.lines.append(f"[{kind}] {text}")

    def dump(self):
        for line in self.lines:
            print(line)
        for kind, n in sorted(self.counts.items()):
            print(f"{kind}: {n}")


def lookup(table, name, row):
    if name not in table:
        raise LookupError("no column", name, row)
    column = table[name]
    if row >= column.shape[0]:
        raise IndexError(f"row {row} of {name}")
    return column[row]


def check_column(column, spec):
    inside = (column >= spec.low) & (column <= spec.high)
    return inside.float().mean()


@torch.compile(backend="eager")
def quality(table, schema, report):
    scores = []
    for spec in schema:
        try:
            lookup(table, spec.name, 0)
        except LookupError as err:
            report.add("missing", str(err))
            continue
        scores.append(check_column(table[spec.name], spec))
    return torch.stack(scores)


@torch.compile(backend="eager")
def design(table, names):
    cols = [table[n] for n in names]
    ones = torch.ones_like(cols[0])
    return torch.stack([ones] + cols, dim=1)


def fit(matrix, target, steps=50, lr=0.1):
    w = torch.zeros(matrix.shape[1])
    for _ in range(steps):
        grad = matrix.t() @ (matrix @ w - target) / matrix.shape[0]
        w = w - lr * grad
    return w


def make_table(n=12):
    i = torch.arange(n, dtype=torch.float32)
    return {
        "height": 1.5 + 0.04 * i,
        "weight": 50 + 3.0 * i,
    }


def standardize(table):
    return {k: (v - v.mean()) / v.std() for k, v in table.items()}


def main():
    table = make_table()
    report = Report()
    scores = quality(table, SCHEMA, report)
    print("scores", scores.tolist())
    std = standardize(table)
    mat = design(std, ["height"])
    w = fit(mat, std["weight"])
    print("weights", [round(v, 3) for v in w.tolist()])
    report.dump()


if __name__ == "__main__":
    main()
