# Token-count budget kept in integer tensors; scheduling must stay integral.
import sys
from enum import IntEnum
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader, Dataset


class Kind(IntEnum):
    TRAIN = 0
    EVAL = 1
    SPARE = 2


class UsageData(Dataset):
    """Per-sample token usage of each kind of job."""

    def __init__(self, n):
        self.rows = [(3 * i % 7, 2 * i % 5, i % 3) for i in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i], dtype=torch.int64)


class Decay:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, epoch):
        return self.factor ** epoch


class Wallet(torch.nn.Module):
    def __init__(self, budget):
        super().__init__()
        self.register_buffer("balance", torch.tensor(budget, dtype=torch.int64))

    def spend(self, usage):
        self.balance.sub_(usage.sum(dim=0)).clamp_(min=0)
        return self.balance

    def forward(self, usage, factor):
        usage.mul_(factor)
        return self.spend(usage)

    def __getitem__(self, kind):
        return int(self.balance[kind])


def epoch(fn, loader, factor):
    for usage in loader:
        fn(usage, factor)


def play(wrap, opts):
    wallet = Wallet([50, 40, 30])
    fn = wrap(wallet)
    loader = DataLoader(UsageData(opts.samples), batch_size=opts.batch)
    decay = Decay(opts.decay)
    outcome = "finished"
    try:
        for e in range(opts.epochs):
            epoch(fn, loader, decay(e))
    except RuntimeError as err:
        outcome = f"refused: {err}"
    return outcome, {k.name: wallet[k] for k in Kind}


opts = SimpleNamespace(samples=8, batch=4, epochs=2, decay=0.5)

results = {}
for label, wrap in {
    "eager": lambda m: m,
    "compiled": lambda m: torch.compile(m, backend="aot_eager", dynamic=False),
}.items():
    results[label] = play(wrap, opts)
    print(f"{label:>9}: {results[label]}")

if results["eager"][1] != results["compiled"][1]:
    sys.exit("balances differ")
