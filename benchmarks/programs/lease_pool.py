# torch: 2.13.0
"""Beam search over a pool of leases.  Every expansion borrows a slot from the pool and has
to give it back, even when the search stops early."""
import argparse
import torch
import torch.nn as nn


class Pool:
    def __init__(self, size):
        self.size = size
        self.free = list(range(size))
        self.history = []

    def take(self):
        slot = self.free.pop()
        self.history.append(("take", slot))
        return slot

    def give(self, slot):
        self.history.append(("give", slot))
        self.free.append(slot)

    @property
    def in_use(self):
        return self.size - len(self.free)


class Scorer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        g = torch.Generator().manual_seed(8)
        self.moves = nn.Parameter(torch.randn(4, dim, generator=g))
        self.read = nn.Linear(dim, 1)
        with torch.no_grad():
            self.read.weight.fill_(0.3)
            self.read.bias.zero_()

    def forward(self, state, move):
        nxt = torch.tanh(state + self.moves[move])
        return nxt, self.read(nxt).sum()


class Expander:
    def __init__(self, scorer, width):
        self.scorer = scorer
        self.width = width

    def candidates(self, pool, state):
        slot = pool.take()
        try:
            for move in range(self.width):
                nxt, score = self.scorer(state, move)
                yield move, nxt, score
        finally:
            pool.give(slot)


class Search:
    def __init__(self, expander, pool, budget):
        self.expander, self.pool, self.budget = expander, pool, budget

    def best_of(self, state):
        best_state, total = state, state.sum() * 0.0
        for move, nxt, score in self.expander.candidates(self.pool, state):
            if move == self.budget:
                break
            best_state = torch.where(score > total, nxt, best_state)
            total = torch.maximum(score, total)
        return best_state, total

    def run(self, state, depth):
        total = state.sum() * 0.0
        for _ in range(depth):
            state, gain = self.best_of(state)
            total = total + gain
        return state, total


def experiment(backend, budget, depth):
    pool = Pool(8)
    search = Search(Expander(Scorer(5), 4), pool, budget)

    def go(x):
        return search.run(x, depth)

    fn = torch.compile(go, backend=backend) if backend else go
    with torch.no_grad():
        state, total = fn(torch.zeros(5))
    return {"total": round(total.item(), 4), "in_use": pool.in_use, "history": pool.history[:6]}


def parse_args(argv=None):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--budget", type=int, default=2)
    p.add_argument("--depth", type=int, default=3)
    p.add_argument("--backend", default="eager")
    return p.parse_args(argv)


def main():
    a = parse_args()
    ref = experiment(None, a.budget, a.depth)
    got = experiment(a.backend, a.budget, a.depth)
    print("eager   ", ref)
    print("compiled", got)
    assert ref["total"] == got["total"]
    assert ref["in_use"] == got["in_use"], f"{got['in_use']} leases leaked by the compiled search"


if __name__ == "__main__":
    main()
