# torch: 2.8.0
"""Key/value cache with pinned entries, used by a toy attention decoder."""
from __future__ import annotations

import collections
from typing import Iterable

import torch
import torch.nn as nn


class PinnedCache:
    """LRU cache: touched entries go to the back, pinned ones to the front."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.evicted: list[str] = []

    def build(self, names: Iterable[str], states: torch.Tensor):
        entries = collections.OrderedDict()
        for i, name in enumerate(names):
            entries[name] = states[i]
        return entries

    def touch(self, entries, name):
        entries.move_to_end(name)

    def pin(self, entries, name):
        entries.move_to_end(name, last=False)

    def shrink(self, entries):
        while len(entries) > self.capacity:
            victim = list(entries)[-1]
            entries.pop(victim)
            self.evicted.append(victim)
        return entries


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.scale = dim ** -0.5

    def forward(self, query, memory):
        q = self.q(query)
        k = self.k(memory)
        weights = torch.softmax(q @ k.t() * self.scale, dim=-1)
        return weights @ memory


class Decoder(nn.Module):
    def __init__(self, dim=8, capacity=3):
        super().__init__()
        self.attention = Attention(dim)
        self.cache = PinnedCache(capacity)
        self.norm = nn.LayerNorm(dim)

    def forward(self, query, states, names, pinned):
        entries = self.cache.build(names, states)
        self.cache.touch(entries, names[0])
        if pinned is not None:
            self.cache.pin(entries, pinned)
        entries = self.cache.shrink(entries)
        memory = torch.stack(list(entries.values()))
        out = self.norm(self.attention(query, memory))
        return out, list(entries)


def embed(names, dim):
    rows = []
    for name in names:
        codes = torch.tensor([ord(c) for c in name], dtype=torch.float32)
        freq = torch.arange(1, dim + 1, dtype=torch.float32)
        rows.append(torch.sin(codes.sum() * freq / 7.0))
    return torch.stack(rows)


SCRIPT = [
    (["sys", "user", "tool"], None),
    (["sys", "user", "tool", "note"], None),
    (["sys", "user", "tool", "note"], "note"),
    (["sys", "user", "tool", "note", "plan"], "sys"),
]


def main():
    torch.manual_seed(11)
    dim = 8
    decoder = Decoder(dim)
    step = torch.compile(decoder, backend="eager")
    query = torch.linspace(-1, 1, dim)[None]
    for turn, (names, pinned) in enumerate(SCRIPT):
        with torch.no_grad():
            out, kept = step(query, embed(names, dim), names, pinned)
        print(turn, kept, f"{out.abs().mean().item():.4f}")
        query = out
    print("evicted:", ", ".join(decoder.cache.evicted) or "none")


if __name__ == "__main__":
    main()
