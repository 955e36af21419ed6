# torch: 2.8.0
"""Spreads costs over a graph of jobs and reports jobs that add others midway."""
from dataclasses import dataclass

import torch


@dataclass
class Job:
    name: str
    cost: float
    spawns: tuple = ()


class Graph:
    def __init__(self):
        self.jobs = {}
        self.edges = []

    def add(self, name, cost, *spawns):
        self.jobs[name] = Job(name, cost, spawns)
        for child in spawns:
            self.edges.append((name, child))
        return self

    def costs(self):
        return {name: job.cost for name, job in self.jobs.items()}

    def spawned(self, name):
        job = self.jobs.get(name)
        return job.spawns if job else ()


class UnstablePlan(Exception):
    pass


def discount(load, depth):
    return load * 0.5 ** depth


def spread(load, costs, edges):
    pending = dict(costs)
    total = load
    for name in pending:
        total = total + discount(load, 1) * pending[name]
        for parent, child in edges:
            if parent == name and child not in pending:
                pending[child] = 0.5
    return total, len(pending)


class Planner:
    def __init__(self, fn):
        self.fn = fn
        self.rejected = []
        self.accepted = {}

    def plan(self, label, graph, load):
        try:
            total, count = self.fn(load, graph.costs(), graph.edges)
        except RuntimeError as err:
            self.rejected.append(label)
            return UnstablePlan(type(err).__name__)
        self.accepted[label] = (total, count)
        return total


def closed_graph():
    g = Graph()
    g.add("fetch", 1.0, "parse")
    g.add("parse", 2.0, "store")
    g.add("store", 4.0)
    return g


def open_graph():
    g = Graph()
    g.add("scan", 1.5, "hash", "index")
    g.add("hash", 2.5)
    return g


def describe(planner):
    for label, (total, count) in planner.accepted.items():
        yield f"{label}: {count} jobs, load {total.sum().item():.2f}"
    for label in planner.rejected:
        yield f"{label}: rejected"


def check_closed(planner, load):
    total, count = planner.accepted["closed"]
    assert count == 3
    want = load + load * 0.5 * 7.0
    assert torch.allclose(total, want), (total, want)


def main():
    torch.manual_seed(2)
    load = torch.rand(4)
    planner = Planner(torch.compile(spread, backend="eager"))
    planner.plan("closed", closed_graph(), load)
    result = planner.plan("open", open_graph(), load)
    print("\n".join(describe(planner)))
    check_closed(planner, load)
    assert isinstance(result, UnstablePlan), f"unstable plan was accepted: {result}"
    assert planner.rejected == ["open"]


if __name__ == "__main__":
    main()
