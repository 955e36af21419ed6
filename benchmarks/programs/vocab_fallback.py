"""Token embedding with a chain of vocabularies and a report of what was missing."""
import re
from collections import Counter

import torch
import torch.nn as nn

WORD = re.compile(r"[a-z]+")


class Vocab:
    def __init__(self, words):
        self.table = {w: i for i, w in enumerate(words)}

    def __len__(self):
        return len(self.table)

    @classmethod
    def from_text(cls, text, top=6):
        counts = Counter(WORD.findall(text.lower()))
        ranked = sorted(counts, key=lambda w: (-counts[w], w))
        return cls(["<unk>"] + ranked[:top])


class MissingLog:
    def __init__(self):
        self.words = []

    def report(self):
        return ", ".join(str(w) for w in self.words) or "nothing"


class BagEncoder(nn.Module):
    def __init__(self, vocab, dim=4):
        super().__init__()
        self.table = vocab.table
        self.unk = vocab.table["<unk>"]
        self.emb = nn.Parameter(torch.arange(len(vocab) * dim, dtype=torch.float).view(-1, dim))
        self.proj = nn.Linear(dim, 2, bias=False)

    def forward(self, words, scale):
        total = self.emb[self.unk] * 0
        missing = []
        for word in words:
            try:
                total = total + self.emb[self.table[word]]
            except KeyError as err:
                missing.append(err.args)
                total = total + self.emb[self.unk]
        return self.proj(total * scale) / len(words), missing


class Pipeline:
    def __init__(self, encoder):
        self.encoder = encoder
        self.missing = MissingLog()

    def __call__(self, sentence):
        words = tuple(WORD.findall(sentence.lower()))
        vec, missing = self.encoder(words, torch.tensor(0.1))
        self.missing.words.extend(a[0] for a in missing if a)
        return vec


CORPUS = """the cat sat on the mat the dog sat on the log
a cat and a dog met on the mat"""

QUERIES = ["the cat sat", "the zebra sat on the dog"]


def main():
    torch.manual_seed(0)
    encoder = BagEncoder(Vocab.from_text(CORPUS))
    plain = Pipeline(encoder)
    fast = Pipeline(torch.compile(encoder, backend="eager"))
    for q in QUERIES:
        a, b = plain(q), fast(q)
        torch.testing.assert_close(a, b)
    print("eager missing   :", plain.missing.report())
    print("compiled missing:", fast.missing.report())
    assert plain.missing.words == fast.missing.words


if __name__ == "__main__":
    main()
