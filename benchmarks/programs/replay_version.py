"""Cache of derived tables, invalidated by the version counter of a tensor."""
import functools
import time

import torch
from torch import nn


def cached_by_version(fn):
    """Memoize a method on (id, _version) of its tensor argument."""
    store = {}

    @functools.wraps(fn)
    def wrapper(self, tensor):
        key = id(tensor)
        entry = store.get(key)
        if entry is None or entry[0] != tensor._version:
            store[key] = entry = (tensor._version, fn(self, tensor))
            self.misses += 1
        return entry[1]

    return wrapper


class Replay:
    """Priorities of experiences, kept in one buffer which is edited in place."""

    def __init__(self, size):
        self.priorities = torch.ones(size)
        self.misses = 0
        self.edits = 0

    @cached_by_version
    def cumulative(self, priorities):
        return torch.cumsum(priorities, 0)

    def pick(self, u):
        table = self.cumulative(self.priorities)
        return torch.searchsorted(table, u * table[-1])

    def skew(self):
        """Number of edits not made through update()."""
        return self.priorities._version - self.edits


class Decay(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, priorities):
        return priorities.mul_(self.rate)


class Learner:
    def __init__(self, replay, rate=0.9):
        self.replay = replay
        self.decay = torch.compile(Decay(rate), backend="aot_eager")
        self.value = torch.linspace(0, 1, len(replay.priorities))

    def update(self, u):
        index = self.replay.pick(u)
        error = (self.value[index] - u).abs()
        self.decay(self.replay.priorities)
        self.replay.edits += 1
        self.value[index] -= 0.1 * error
        return error.mean().item()


def train(steps=4, size=10):
    learner = Learner(Replay(size))
    errors = []
    for k in range(steps):
        u = torch.linspace(0.05, 0.95, 5) * (1 - 0.1 * k)
        errors.append(learner.update(u))
    return learner, errors


def main():
    began = time.perf_counter()
    learner, errors = train()
    assert time.perf_counter() - began < 600
    replay = learner.replay
    print("errors", [round(e, 4) for e in errors])
    print("misses", replay.misses, "edits", replay.edits)
    print("foreign edits", replay.skew())
    if replay.skew():
        raise RuntimeError("priorities were edited behind our back")


if __name__ == "__main__":
    main()
