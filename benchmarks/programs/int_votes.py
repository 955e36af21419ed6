# torch: 2.13.0
"""Ensemble vote aggregation.  Integer ballots are converted on the slow path."""
import argparse
from dataclasses import dataclass
from typing import Callable, Dict

import torch
from torch import nn

RULES: Dict[str, Callable] = {}


def rule(name):
    def wrap(fn):
        RULES[name] = torch.compile(fn, backend="inductor")
        return fn

    return wrap


@rule("share")
def share(ballots):
    return ballots / ballots.sum(-1, keepdim=True).clamp(min=1)


@rule("soft")
def soft(ballots):
    return ballots.softmax(-1)


@dataclass
class Stats:
    fast: int = 0
    slow: int = 0


class Voter(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.lin = nn.Linear(d, k)

    def forward(self, x):
        return self.lin(x).argmax(-1)


class Ensemble:
    def __init__(self, members, d, k):
        self.k = k
        self.voters = [Voter(d, k) for _ in range(members)]
        self.stats = Stats()

    def ballots(self, x):
        votes = torch.stack([v(x) for v in self.voters], -1)
        return nn.functional.one_hot(votes, self.k).sum(1)

    def decide(self, x, name):
        b = self.ballots(x)
        try:
            p = RULES[name](b)
            self.stats.fast += 1
        except NotImplementedError:
            p = RULES[name](b.float())
            self.stats.slow += 1
        return p


def entropy(p):
    p = p.double().clamp(min=1e-9)
    return float(-(p * p.log()).sum(-1).mean())


def main(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--members", type=int, default=7)
    ap.add_argument("--rules", nargs="*", default=["share", "soft"])
    ns = ap.parse_args(argv)
    torch.manual_seed(9)
    x = torch.randn(5, 4)
    ens = Ensemble(ns.members, 4, 3)
    with torch.no_grad():
        for name in ns.rules:
            p = ens.decide(x, name)
            print(f"{name}: {p.dtype} entropy {entropy(p):.3f}")
    print(ens.stats)


if __name__ == "__main__":
    main([])
