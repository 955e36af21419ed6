# torch: 2.13.0
"""Column store for tabular batches with a compiled assembler."""
from collections import namedtuple
from functools import reduce

import torch

Schema = namedtuple("Schema", ["name", "dtype", "scale"])

SCHEMAS = {
    "age": Schema("age", torch.float32, 100.0),
    "income": Schema("income", torch.float32, 1000.0),
    "visits": Schema("visits", torch.int64, 10.0),
    "score": Schema("score", torch.float32, 1.0),
}


class Column:
    def __init__(self, schema, values):
        self.schema = schema
        self.values = values.to(schema.dtype)

    def scaled(self):
        return self.values.float() / self.schema.scale

    def __len__(self):
        return self.values.shape[0]


class Frame:
    def __init__(self, columns):
        self.columns = dict(columns)
        sizes = {len(c) for c in self.columns.values()}
        if len(sizes) != 1:
            raise ValueError("ragged frame")
        self.rows = sizes.pop()

    @classmethod
    def random(cls, rows, gen):
        cols = {}
        for name, schema in SCHEMAS.items():
            raw = torch.rand(rows, generator=gen) * schema.scale
            cols[name] = Column(schema, raw)
        return cls(cols)

    def select(self, *names):
        return Frame((n, self.columns[n]) for n in names)

    def order(self):
        return list(self.columns)

    def layout(self):
        return {name: self.columns[name].schema.scale for name in self.order()}

    def block(self):
        return torch.stack([self.columns[n].scaled() for n in sorted(self.columns)])


class Assembler:
    """Turns a frame to a matrix, one column for each feature, with weights."""

    def __init__(self, decay):
        self.decay = decay
        self.batches = 0
        self._impl = torch.compile(self._assemble, backend="eager")

    def _assemble(self, block, layout):
        names = list(layout)
        places = sorted(names)
        parts = []
        weight = 1.0
        for name in names:
            parts.append(block[places.index(name)] * weight)
            weight = weight * self.decay
        return torch.stack(parts, dim=1)

    def __call__(self, frame):
        self.batches += 1
        return self._impl(frame.block(), frame.layout())


class RunningMean:
    def __init__(self):
        self.total = {}
        self.count = 0

    def update(self, frame, matrix):
        for i, name in enumerate(frame.order()):
            self.total[name] = self.total.get(name, 0.0) + matrix[:, i].sum().item()
        self.count += frame.rows

    def value(self, name):
        return self.total[name] / self.count


def plain_matrix(frame, decay):
    cols = [frame.columns[n].scaled() * decay ** i for i, n in enumerate(frame.order())]
    return torch.stack(cols, dim=1)


def permutations_of(frame):
    names = frame.order()
    yield frame
    yield frame.select(*reversed(names))
    yield frame.select(*(names[1:] + names[:1]))


def main():
    gen = torch.Generator().manual_seed(11)
    assembler = Assembler(decay=0.5)
    stats = RunningMean()
    errors = []
    base = Frame.random(6, gen)
    for frame in permutations_of(base):
        matrix = assembler(frame)
        stats.update(frame, matrix)
        gap = (matrix - plain_matrix(frame, 0.5)).abs().max().item()
        errors.append(gap)
    print("gaps", errors)
    print("means", {n: round(stats.value(n), 4) for n in base.order()})
    assert assembler.batches == 3
    worst = reduce(max, errors, 0.0)
    assert worst < 1e-6, f"columns are mixed up: {worst}"


if __name__ == "__main__":
    main()
