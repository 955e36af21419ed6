# torch: 2.8.0
"""Preprocessing of tabular data with an audit trail: every transform reports
which columns it has read, so that a downstream check can flag unused ones."""
import argparse
import functools
import logging
import operator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, Sequence, Tuple

import torch
import torch.nn as nn

logger = logging.getLogger("audit")

SCHEMA: Mapping[str, int] = MappingProxyType(
    {"age": 0, "income": 1, "tenure": 2, "visits": 3, "score": 4}
)


class Table:
    """Named columns over a dense tensor."""

    def __init__(self, data: torch.Tensor, schema: Mapping[str, int] = SCHEMA) -> None:
        if data.shape[1] != len(schema):
            raise ValueError("schema does not fit the data")
        self.data = data
        self.schema = schema

    def __len__(self) -> int:
        return self.data.shape[0]

    def column(self, name: str) -> torch.Tensor:
        return self.data[:, self.schema[name]]

    @classmethod
    def random(cls, rows: int, seed: int) -> "Table":
        gen = torch.Generator().manual_seed(seed)
        data = torch.rand(rows, len(SCHEMA), generator=gen)
        return cls(data * torch.tensor([80.0, 5e4, 10.0, 30.0, 1.0]))


@dataclass
class Scaling:
    center: float
    spread: float

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.center) / self.spread


@dataclass
class AuditLog:
    reads: List[Tuple[str, FrozenSet[str]]] = field(default_factory=list)

    def add(self, step: str, columns: FrozenSet[str]) -> None:
        self.reads.append((step, columns))

    def used(self) -> FrozenSet[str]:
        return functools.reduce(operator.or_, (c for _, c in self.reads), frozenset())

    def unused(self, schema: Iterable[str]) -> List[str]:
        return sorted(set(schema) - self.used())


SCALINGS: Dict[str, Scaling] = {
    "age": Scaling(40.0, 20.0),
    "income": Scaling(25e3, 1e4),
    "visits": Scaling(15.0, 5.0),
}


def demographics(data: torch.Tensor) -> Tuple[torch.Tensor, FrozenSet[str]]:
    age = SCALINGS["age"](data[:, SCHEMA["age"]])
    income = SCALINGS["income"](data[:, SCHEMA["income"]])
    features = torch.stack([age, income, age * income], dim=1)
    return features, frozenset(["age", "income"])


def activity(data: torch.Tensor) -> Tuple[torch.Tensor, FrozenSet[str]]:
    visits = SCALINGS["visits"](data[:, SCHEMA["visits"]])
    features = torch.stack([visits, visits.abs().sqrt()], dim=1)
    return features, frozenset(["visits"])


class Step:
    def __init__(self, name: str, fn: Callable) -> None:
        self.name = name
        self.fn = fn

    def __call__(self, table: Table, audit: AuditLog) -> torch.Tensor:
        features, columns = self.fn(table.data)
        audit.add(self.name, columns)
        return features


class Preprocessor:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.audit = AuditLog()

    def __call__(self, table: Table) -> torch.Tensor:
        parts = [step(table, self.audit) for step in self.steps]
        width = sum(p.shape[1] for p in parts)
        logger.debug("%d rows, %d features", len(table), width)
        return torch.cat(parts, dim=1)


class Head(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)
        nn.init.constant_(self.linear.weight, 0.1)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.linear(x)).squeeze(1)


def train(head: Head, features: torch.Tensor, target: torch.Tensor, epochs: int) -> List[float]:
    optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
    losses = []
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy(head(features), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(1)
    table = Table.random(args.rows, seed=4)
    compiled = [torch.compile(fn, backend="eager") for fn in (demographics, activity)]
    steps = [Step(n, fn) for n, fn in zip(("demographics", "activity"), compiled)]
    prep = Preprocessor(steps)
    features = prep(table)
    target = (table.column("score") > 0.5).float()
    losses = train(Head(features.shape[1]), features, target, args.epochs)
    print("losses", [round(v, 4) for v in losses])
    for name, columns in prep.audit.reads:
        print(f"{name:>14} reads {sorted(columns)}")
    print("unused", prep.audit.unused(SCHEMA))
    if "income" not in prep.audit.used():
        raise LookupError("income is part of the features but was not audited")


if __name__ == "__main__":
    main()
