"""Attention block whose numerics are switched by environment variables."""
import os
from contextlib import contextmanager

import torch
import torch.nn as nn


@contextmanager
def environment(**changes):
    saved = {k: os.environ.get(k) for k in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for key, value in saved.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def flag(name, default="0"):
    return os.environ.get("MINILM_" + name, default)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def scores(self, q, k):
        s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        cap = float(flag("SOFTCAP"))
        if cap > 0:
            s = cap * torch.tanh(s / cap)
        return s

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = self.scores(q, k).softmax(-1)
        return self.proj((a @ v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class MiniLM(nn.Module):
    def __init__(self, vocab=11, dim=16, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens):
        x = 4 * self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    torch.manual_seed(0)
    model = MiniLM().eval()
    for block in model.blocks:
        nn.init.normal_(block.attn.qkv.weight, std=1.0)
    run = torch.compile(model, backend="eager")
    tokens = (torch.arange(12).view(2, 6) * 7) % 11
    with torch.no_grad():
        plain = run(tokens)
        with environment(MINILM_SOFTCAP="0.5"):
            capped = run(tokens)
        again = run(tokens)
    print("plain ", plain.abs().mean().item())
    print("capped", capped.abs().mean().item())
    torch.testing.assert_close(plain, again)
    change = (plain - capped).abs().max().item()
    assert change > 1e-3, "the soft cap had no effect"


if __name__ == "__main__":
    main()
