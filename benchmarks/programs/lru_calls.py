# torch: 2.8.0
"""Sinusoidal-position text scorer. Position tables are cached, cache misses are audited."""
import functools
import math
import string
from itertools import zip_longest

import torch
from torch import nn

ALPHABET = string.ascii_lowercase + " .,"
AUDIT = []


def audited(kind):
    """Decorator: note each real computation of an expensive table."""
    def deco(fn):
        @functools.wraps(fn)
        def inner(*args):
            AUDIT.append((kind,) + args)
            return fn(*args)
        return inner
    return deco


@functools.lru_cache(maxsize=None)
@audited("freq")
def frequencies(dim, base):
    return tuple(1.0 / base ** (2 * i / dim) for i in range(dim // 2))


@functools.lru_cache(maxsize=None)
@audited("alibi")
def head_slopes(n_heads):
    return [2 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)]


class CharCodec:
    def __init__(self, alphabet):
        self._to = {c: i + 1 for i, c in enumerate(alphabet)}
        self._from = {i: c for c, i in self._to.items()}

    def __len__(self):
        return len(self._to) + 1

    def encode(self, text):
        return [self._to.get(c, 0) for c in text.lower()]

    def decode(self, ids):
        return "".join(self._from.get(int(i), "?") for i in ids)

    def batch(self, texts):
        cols = zip_longest(*map(self.encode, texts), fillvalue=0)
        return torch.tensor(list(cols)).T.contiguous()


class PositionalScorer(nn.Module):
    def __init__(self, vocab, dim=16, heads=4):
        super().__init__()
        self.dim, self.heads = dim, heads
        self.emb = nn.Embedding(vocab, dim)
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, vocab)

    def positions(self, n):
        freq = torch.tensor(frequencies(self.dim, 100.0))
        ang = torch.arange(n).unsqueeze(1) * freq
        return torch.cat([ang.sin(), ang.cos()], dim=1)

    def bias(self, n):
        idx = torch.arange(n)
        dist = (idx[None, :] - idx[:, None]).abs().float()
        slopes = torch.tensor(head_slopes(self.heads))
        causal = torch.full((n, n), float("-inf")).triu(1)
        return -slopes[:, None, None] * dist + causal

    def forward(self, ids):
        b, n = ids.shape
        x = self.emb(ids) + self.positions(n)
        split = lambda t: t.view(b, n, self.heads, -1).transpose(1, 2)
        q, k, v = split(self.q(x)), split(self.k(x)), split(x)
        att = q @ k.transpose(-1, -2) / math.sqrt(self.dim // self.heads) + self.bias(n)
        y = (att.softmax(-1) @ v).transpose(1, 2).reshape(b, n, self.dim)
        return self.out(x + y)


def bits_per_char(logits, ids):
    logp = logits[:, :-1].log_softmax(-1)
    picked = logp.gather(-1, ids[:, 1:, None]).squeeze(-1)
    mask = (ids[:, 1:] != 0).float()
    return (-(picked * mask).sum() / mask.sum() / math.log(2)).item()


def greedy(model, codec, prompt, steps):
    ids = codec.encode(prompt)
    for _ in range(steps):
        logits = model(torch.tensor([ids[-12:]]))
        ids.append(int(logits[0, -1].argmax()))
    return codec.decode(ids)


def run():
    torch.manual_seed(21)
    codec = CharCodec(ALPHABET)
    model = PositionalScorer(len(codec)).eval()
    scorer = torch.compile(model, backend="aot_eager")
    groups = [
        ["the cat sat.", "a dog ran far."],
        ["rain, rain, go away", "come again another day."],
        ["short", "tiny"],
    ]
    with torch.no_grad():
        for texts in groups:
            ids = codec.batch(texts)
            print(f"{ids.shape[1]:3d} chars  {bits_per_char(scorer(ids), ids):.3f} bits")
        sample = greedy(model, codec, "the cat", 5)
    print("sample:", repr(sample))
    misses = {}
    for kind, *args in AUDIT:
        misses[kind] = misses.get(kind, 0) + 1
    print("tables computed:", misses)
    return misses


if __name__ == "__main__":
    run()
