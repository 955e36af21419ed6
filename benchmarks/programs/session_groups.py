# torch: 2.8.0 2.13.0
# Clickstream sessionizer: events -> runs per page -> pooled session vectors.
import collections
import itertools
import random

import torch
from torch.utils.data import DataLoader, Dataset

PAGES = ["home", "search", "item", "cart"]
Event = collections.namedtuple("Event", "page dwell")


def synth_sessions(n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        size = rng.randint(4, 6)
        page = rng.choice(PAGES)
        events = []
        for _ in range(size):
            if rng.random() < 0.5:
                page = rng.choice(PAGES)
            events.append(Event(page, rng.randint(1, 9)))
        yield events


class SessionSet(Dataset):
    def __init__(self, n=6, seed=3):
        self.rows = list(synth_sessions(n, seed))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(batch):
    return batch


class SessionPooler(torch.nn.Module):
    def __init__(self, dim=3):
        super().__init__()
        self.emb = torch.nn.Embedding(len(PAGES), dim)
        self.index = {p: i for i, p in enumerate(PAGES)}

    def runs(self, events):
        """(page, run iterator) pairs of consecutive equal pages"""
        return [(k, g) for k, g in itertools.groupby(events, key=lambda e: e.page)]

    def forward(self, anchor, events):
        out = anchor
        lengths = []
        for page, run in self.runs(events):
            run = list(run)
            lengths.append(len(run))
            weight = sum(e.dwell for e in run)
            vec = self.emb.weight[self.index[page]]
            out = out + vec * weight
        return out, lengths


class Report:
    def __init__(self):
        self.lines = []
        self.hist = collections.Counter()

    def add(self, i, vec, lengths):
        self.hist.update(lengths)
        self.lines.append(f"session {i}: runs={len(lengths)} longest={max(lengths)} norm={vec.norm().item():.3f}")

    def __str__(self):
        tail = ", ".join(f"{k}:{v}" for k, v in sorted(self.hist.items()))
        return "\n".join(self.lines + ["lengths " + tail])


def main():
    torch.manual_seed(0)
    pooler = SessionPooler()
    compiled = torch.compile(pooler, backend="eager")
    loader = DataLoader(SessionSet(), batch_size=2, collate_fn=collate)
    report = Report()
    anchor = torch.zeros(3)
    i = 0
    with torch.no_grad():
        for batch in loader:
            for events in batch:
                vec, lengths = compiled(anchor, events)
                report.add(i, vec, lengths)
                i += 1
    print(report)


main()
