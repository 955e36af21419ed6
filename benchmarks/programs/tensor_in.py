# torch: 2.8.0
"""Tabu search for a small max-cut instance (spins, one flip per iteration)."""
import itertools
import json
from collections import Counter
from dataclasses import dataclass, field

import torch


def build_instance(n, density, seed):
    gen = torch.Generator().manual_seed(seed)
    w = torch.randint(1, 6, (n, n), generator=gen).float()
    keep = torch.rand(n, n, generator=gen) < density
    w = (w * keep).triu(1)
    return w + w.T


def cut_value(w, spins):
    return 0.25 * (w * (1 - torch.outer(spins, spins))).sum()


def brute_force(w):
    """Reference optimum; fine for a dozen nodes."""
    n = len(w)
    all_spins = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=n - 1)))
    all_spins = torch.cat([torch.ones(len(all_spins), 1), all_spins], dim=1)
    vals = 0.25 * (w.sum() - torch.einsum("bi,ij,bj->b", all_spins, w, all_spins))
    return vals.max().item()


def make_evaluator(w, backend):
    """Closure over the couplings: value after flipping `k`, and whether that
    value is one of the remembered ones."""

    def evaluate(spins, flip, memory):
        moved = spins * (1 - 2 * flip)
        value = cut_value(w, moved)
        gain = value - cut_value(w, spins)
        return value, gain, value in memory

    return torch.compile(evaluate, backend=backend)


@dataclass
class Memory:
    """Ring buffer with the values of the last visited states."""
    size: int = 3
    slots: list = field(default_factory=list)
    cursor: int = 0

    def __post_init__(self):
        self.slots = [torch.tensor(float("-inf")) for _ in range(self.size)]

    def remember(self, value):
        self.slots[self.cursor % self.size] = value
        self.cursor += 1

    def __iter__(self):
        return iter(self.slots)


class TabuSearch:
    def __init__(self, w, backend="aot_eager"):
        self.w = w
        self.n = len(w)
        self.evaluate = make_evaluator(w, backend)
        self.memory = Memory()
        self.seen = Counter()
        self.best = float("-inf")
        self.path = []

    def neighbours(self, spins):
        eye = torch.eye(self.n)
        for k in range(self.n):
            value, gain, repeated = self.evaluate(spins, eye[k], list(self.memory))
            self.seen["repeated" if repeated is True else "fresh"] += 1
            yield k, value, gain.item(), repeated

    def step(self, spins):
        ranked = sorted(self.neighbours(spins), key=lambda t: (-t[2], t[0]))
        for k, value, gain, repeated in ranked:
            aspiration = value.item() > self.best
            if repeated is True and not aspiration:
                continue
            break
        spins = spins.clone()
        spins[k] *= -1
        self.memory.remember(value)
        self.best = max(self.best, value.item())
        self.path.append((k, value.item(), gain))
        return spins

    def run(self, spins, iterations):
        for _ in range(iterations):
            spins = self.step(spins)
            yield spins


def summarise(search):
    ups = sum(1 for _, _, g in search.path if g > 0)
    flips = Counter(k for k, *_ in search.path)
    return {
        "best": search.best,
        "uphill": ups,
        "distinct nodes": len(flips),
        "neighbour states": dict(sorted(search.seen.items())),
        "last": [v for _, v, _ in search.path[-4:]],
    }


weights = build_instance(n=9, density=0.55, seed=31)
print(f"{len(weights)} nodes, {int((weights > 0).sum()) // 2} edges, total weight {weights.sum().item() / 2:.0f}")

search = TabuSearch(weights)
start = torch.ones(len(weights))
for i, state in enumerate(search.run(start, 10)):
    if i % 3 == 0:
        side = [j for j, s in enumerate(state.tolist()) if s < 0]
        print(f"iter {i:2d} cut {cut_value(weights, state):.0f} side {side}")

print(json.dumps(summarise(search), indent=1))
print("optimum", brute_force(weights))
