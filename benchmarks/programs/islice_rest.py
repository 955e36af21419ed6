# torch: 2.8.0
# Tiny bag-of-words sentiment model trained with a warm-up phase on short sentences.
import itertools
import random
import re
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(7)
torch.manual_seed(7)

POSITIVE = "good great lovely bright warm happy clever fresh".split()
NEGATIVE = "bad awful dull cold sad broken bitter stale".split()
NEUTRAL = "the a film song meal was and very with story of".split()
TOKEN = re.compile(r"[a-z]+")


def make_sentence(label):
    pool = POSITIVE if label else NEGATIVE
    words = random.choices(NEUTRAL, k=random.randint(2, 5)) + random.choices(pool, k=2)
    random.shuffle(words)
    return " ".join(words).capitalize() + "."


corpus = [(make_sentence(i % 2), i % 2) for i in range(48)]


def tokenize(text):
    return TOKEN.findall(text.lower())


counts = Counter(itertools.chain.from_iterable(tokenize(t) for t, _ in corpus))
vocab = {w: i + 1 for i, (w, _) in enumerate(sorted(counts.items(), key=lambda kv: (-kv[1], kv[0])))}
vocab["<pad>"] = 0
inverse = {i: w for w, i in vocab.items()}


def encode(text, width=8):
    ids = [vocab.get(w, 0) for w in tokenize(text)][:width]
    return ids + [0] * (width - len(ids))


def collate(rows):
    x = torch.tensor([encode(t) for t, _ in rows])
    y = torch.tensor([float(l) for _, l in rows])
    return x, y


class BagModel(nn.Module):
    def __init__(self, n_words, dim=12):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=0)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        pooled = (self.emb(ids) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.out(self.norm(pooled)).squeeze(-1)


model = BagModel(len(vocab))
opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)

WARMUP = 2
WEIGHTS = [1.0, 0.5, 0.25, 2.0, 4.0, 1.0]


@torch.compile(backend="eager")
def staged_loss(logits, target):
    """First chunks are 'warm-up' chunks with a smooth target, the rest is hard."""
    per_item = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    soft = F.binary_cross_entropy_with_logits(logits, target * 0.8 + 0.1, reduction="none")
    weights = iter(WEIGHTS)
    chunks = list(zip(per_item.chunk(len(WEIGHTS)), soft.chunk(len(WEIGHTS))))
    total = logits.new_zeros(())
    used = []
    for (hard_c, soft_c), w in zip(chunks[:WARMUP], list(itertools.islice(weights, WARMUP))):
        total = total + w * soft_c.mean()
        used.append(w)
    for (hard_c, soft_c), w in zip(chunks[WARMUP:], weights):
        total = total + w * hard_c.mean()
        used.append(w)
    accuracy = ((logits > 0) == (target > 0.5)).float().mean()
    return total / len(used), accuracy, used


def batches(data, size):
    it = iter(data)
    while chunk := list(itertools.islice(it, size)):
        yield collate(chunk)


losses = []
for epoch in range(5):
    order = sorted(corpus, key=lambda r: len(r[0])) if epoch == 0 else random.sample(corpus, len(corpus))
    running = 0.0
    for step, (x, y) in enumerate(batches(order, 12)):
        opt.zero_grad()
        loss, acc, used = staged_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        opt.step()
        running += loss.item()
    losses.append(running)
    print(f"epoch {epoch} loss {running:.4f} acc {acc:.3f} weights {sum(used):.2f}")

with torch.no_grad():
    scores = model(torch.arange(1, len(vocab)).unsqueeze(1))
ranking = sorted(range(1, len(vocab)), key=lambda i: -scores[i - 1].item())
print("most positive:", ", ".join(inverse[i] for i in ranking[:4]))
print("most negative:", ", ".join(inverse[i] for i in ranking[-4:]))

confusion = Counter()
for text, label in corpus:
    with torch.no_grad():
        guess = int(model(torch.tensor([encode(text)])).item() > 0)
    confusion[label, guess] += 1
print(dict(sorted(confusion.items())))
