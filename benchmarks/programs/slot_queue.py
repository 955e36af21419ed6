# torch: 2.13.0
import argparse
import contextlib
from dataclasses import dataclass

import torch


@dataclass
class Job:
    name: str
    load: float
    ticks: int


class Cluster:
    def __init__(self, slots):
        self.slots = slots
        self.running = {}
        self.active = self.running.keys()
        self.finished = []
        self.utilisation = []

    def start(self, job):
        self.running[job.name] = job.ticks

    def advance(self):
        done = []
        for name in list(self.running):
            self.running[name] -= 1
            if self.running[name] <= 0:
                done.append(name)
        for name in done:
            del self.running[name]
            self.finished.append(name)
        return len(done)

    def room(self):
        return self.slots - len(self.active)


class Backlog:
    def __init__(self, jobs):
        self.pending = list(jobs)

    def __len__(self):
        return len(self.pending)

    def take(self, count):
        batch = self.pending[:count]
        del self.pending[:count]
        return batch


@contextlib.contextmanager
def section(trace, label):
    trace.append(f"+{label}")
    try:
        yield
    finally:
        trace.append(f"-{label}")


def admit(cluster, backlog, heat):
    admitted = 0
    for job in backlog.take(1):
        cluster.start(job)
        heat = heat + job.load
        admitted += 1
    while cluster.room() > 0 and len(backlog) > 0:
        for job in backlog.take(1):
            cluster.start(job)
            heat = heat + job.load
            admitted += 1
    return heat, admitted


def tick(heat, cluster, backlog, cooling):
    heat, admitted = admit(cluster, backlog, heat)
    peak = len(cluster.running)
    cluster.utilisation.append(peak)
    heat = heat * cooling
    cluster.advance()
    return heat, admitted


def workload(count):
    for i in range(count):
        yield Job(f"job{i}", 1.0 + (i % 3) * 0.5, 1 + i % 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=9)
    parser.add_argument("--cooling", type=float, default=0.5)
    args = parser.parse_args([])

    cluster = Cluster(args.slots)
    backlog = Backlog(workload(args.jobs))
    step = torch.compile(tick, backend="eager")
    heat = torch.zeros(2)
    trace = []
    total = 0
    for index in range(20):
        with section(trace, index):
            heat, admitted = step(heat, cluster, backlog, args.cooling)
        total += admitted
        if not cluster.running and not len(backlog):
            break

    assert total == args.jobs
    assert len(trace) % 2 == 0 and trace[0] == "+0"
    assert sorted(cluster.finished) == sorted(j.name for j in workload(args.jobs))
    over = [n for n in cluster.utilisation if n > args.slots]
    if over:
        raise RuntimeError(f"{len(over)} ticks above {args.slots}: {cluster.utilisation}")
    print("ticks", len(cluster.utilisation), "heat", heat.tolist())


if __name__ == "__main__":
    main()
