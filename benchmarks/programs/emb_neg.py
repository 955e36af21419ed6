# torch: 2.8.0
"""Session-based recommender: item histories padded with -1, trained with BPR."""
import logging
from collections import Counter, defaultdict
from typing import Dict, List, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

LOG = logging.getLogger("recsys")
PAD = -1


class Catalog:
    """Maps item names to dense ids."""

    def __init__(self):
        self._ids: Dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self._ids.setdefault(name, len(self._ids))

    def __len__(self):
        return len(self._ids)

    def names(self) -> List[str]:
        return sorted(self._ids, key=self._ids.get)


RAW = """
ann: tent lamp stove boots
bob: boots socks jacket
cid: novel lamp pen
dee: pen paper novel ink
eve: tent stove
fay: paper ink pen
gus: socks jacket boots tent
hal: novel ink lamp paper
"""


def parse(text: str, catalog: Catalog) -> Dict[str, List[int]]:
    sessions = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        user, _, items = line.partition(":")
        sessions[user] = [catalog[i] for i in items.split()]
    return sessions


def pad(histories: List[List[int]], width: Optional[int] = None) -> torch.Tensor:
    width = width or max(map(len, histories))
    return torch.tensor([h[:width] + [PAD] * (width - len(h)) for h in histories])


class SessionModel(nn.Module):
    def __init__(self, n_items: int, dim: int = 8):
        super().__init__()
        self.items = nn.Parameter(0.3 * torch.randn(n_items, dim))
        self.mix = nn.Linear(dim, dim)

    def encode(self, history: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rows = F.embedding(history, self.items)
        pooled = rows.sum(dim=1) / lengths.unsqueeze(1)
        return torch.tanh(self.mix(pooled))

    def forward(self, history, lengths):
        return self.encode(history, lengths) @ self.items.t()


def bpr_loss(scores: torch.Tensor, pos: torch.Tensor, neg: torch.Tensor) -> torch.Tensor:
    p = scores.gather(1, pos.unsqueeze(1))
    n = scores.gather(1, neg.unsqueeze(1))
    return -F.logsigmoid(p - n).mean()


class NegativeSampler:
    def __init__(self, sessions, n_items, seed=5):
        self.seen = {u: set(s) for u, s in sessions.items()}
        self.n_items = n_items
        self.gen = torch.Generator().manual_seed(seed)

    def draw(self, user: str) -> int:
        while True:
            j = int(torch.randint(self.n_items, (1,), generator=self.gen))
            if j not in self.seen[user]:
                return j


def fit(model: SessionModel, sessions, epochs: int = 15) -> List[float]:
    sampler = NegativeSampler(sessions, len(model.items))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for user, items in sessions.items():
            hist, target = torch.tensor([items[:-1]]), torch.tensor([items[-1]])
            scores = model(hist, torch.tensor([float(len(items) - 1)]))
            loss = bpr_loss(scores, target, torch.tensor([sampler.draw(user)]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        losses.append(total / len(sessions))
    return losses


class Recommender:
    """Serves the model. Batches that the fast path rejects go row by row."""

    def __init__(self, model: SessionModel):
        self.model = model.eval()
        self.fast = torch.compile(model)
        self.stats = Counter()

    @torch.no_grad()
    def scores(self, histories: List[List[int]]) -> torch.Tensor:
        batch = pad(histories)
        lengths = torch.tensor([float(len(h)) for h in histories])
        try:
            out = self.fast(batch, lengths)
            self.stats["batched"] += 1
            return out
        except IndexError as exc:
            LOG.info("ragged batch: %s", exc)
            self.stats["row by row"] += 1
            rows = [self.model(torch.tensor([h]), n.view(1)) for h, n in zip(histories, lengths)]
            return torch.cat(rows)

    def top(self, histories, k=2):
        scores = self.scores(histories)
        for row, hist in zip(scores, histories):
            row[hist] = float("-inf")
            yield row.topk(k).indices.tolist(), row.max().item()


torch.manual_seed(1)
catalog = Catalog()
sessions = parse(RAW, catalog)
popularity = Counter(i for s in sessions.values() for i in s)
model = SessionModel(len(catalog))
losses = fit(model, sessions)
print(f"{len(sessions)} sessions, {len(catalog)} items, bpr {losses[0]:.3f} -> {losses[-1]:.3f}")

service = Recommender(model)
names = catalog.names()
recs = defaultdict(list)
for user, (ids, best) in zip(sessions, service.top(list(sessions.values()))):
    recs[names[ids[0]]].append(user)
    print(f"  {user}: {', '.join(names[i] for i in ids):<16} best {best:+.3f}")
print("most recommended", max(recs, key=lambda k: (len(recs[k]), k)), "| served", dict(service.stats))
print("most popular", names[popularity.most_common(1)[0][0]])
