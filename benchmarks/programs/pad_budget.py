# torch: 2.8.0 2.13.0
"""Batch cost planner for a translation service.  Prints a plan as JSON."""
import argparse
import dataclasses
import json
from typing import Iterator, List

import torch


@dataclasses.dataclass
class Job:
    name: str
    length: int

    def tokens(self) -> torch.Tensor:
        return (torch.arange(self.length) * 7 + len(self.name)) % 11


@dataclasses.dataclass
class Plan:
    rows: List[dict] = dataclasses.field(default_factory=list)

    def add(self, **row):
        self.rows.append(row)

    def to_json(self):
        return json.dumps(self.rows, indent=1, sort_keys=True)


class Encoder(torch.nn.Module):
    """Embeds a sentence and says how many slots the scheduler has to reserve for it."""

    def __init__(self, floor: float, vocab=11, dim=4):
        super().__init__()
        self.floor = floor
        self.emb = torch.nn.Embedding(vocab, dim)
        self.mix = torch.nn.GRUCell(dim, dim)

    def reserve(self, n):
        return max(n, self.floor)

    def forward(self, ids):
        vecs = self.emb(ids)
        slots = self.reserve(ids.shape[0])
        return vecs.sum(0) / slots, slots


def jobs(spec: str) -> Iterator[Job]:
    for item in spec.split():
        name, length = item.split("=")
        yield Job(name, int(length))


class Planner:
    def __init__(self, encoder):
        self.encoder = torch.compile(encoder, backend="eager", dynamic=True)
        self.used = 0

    def plan(self, todo) -> Plan:
        plan = Plan()
        with torch.no_grad():
            for job in todo:
                vec, slots = self.encoder(job.tokens())
                start = self.used
                self.used += slots
                plan.add(job=job.name, start=start, slots=slots, norm=round(vec.norm().item(), 3))
        return plan


def parser():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--jobs", default="a=9 bb=12 ccc=7 d=30")
    p.add_argument("--floor", type=float, default=6.5)
    p.add_argument("--seed", type=int, default=4)
    return p


def main(args):
    torch.manual_seed(args.seed)
    planner = Planner(Encoder(args.floor).eval())
    plan = planner.plan(jobs(args.jobs))
    print(plan.to_json())
    print("reserved", planner.used)


if __name__ == "__main__":
    main(parser().parse_args())
