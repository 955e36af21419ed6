# torch: 2.8.0
"""Long-tail classification with class-balanced sampling (inverse-frequency weights)."""
import random
import warnings
from collections import Counter
from types import MappingProxyType
from typing import Iterator, List, Sequence

import torch
from torch import nn
from torch.utils.data import Dataset, Sampler

OPTIONS = MappingProxyType({
    "classes": 4,
    "head": 60,
    "decay": 2.5,
    "power": -1,
    "epochs": 3,
    "batch": 16,
    "compile": {"backend": "inductor"},
})


class LongTail(Dataset):
    """Gaussian blobs whose sizes fall geometrically."""

    def __init__(self, classes: int, head: int, decay: float, seed: int):
        gen = torch.Generator().manual_seed(seed)
        self.sizes = [max(2, int(head / decay ** c)) for c in range(classes)]
        centres = 2.0 * torch.randn(classes, 5, generator=gen)
        xs = [centres[c] + torch.randn(n, 5, generator=gen) for c, n in enumerate(self.sizes)]
        self.x = torch.cat(xs)
        self.y = torch.repeat_interleave(torch.arange(classes), torch.tensor(self.sizes))

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def class_counts(self) -> torch.Tensor:
        return torch.bincount(self.y)


def balance(counts: torch.Tensor, smoothing: int) -> torch.Tensor:
    """Un-normalised sampling weight of each class: (counts + smoothing) ** power."""
    return (counts + smoothing) ** OPTIONS["power"]


fast_balance = torch.compile(balance, **OPTIONS["compile"])


def class_weights(counts: torch.Tensor, smoothing: int = 1) -> torch.Tensor:
    try:
        w = fast_balance(counts, smoothing)
    except RuntimeError as exc:
        # integer counts: go through floating point
        warnings.warn(f"retrying in float ({type(exc).__name__})", stacklevel=2)
        w = fast_balance(counts.float(), smoothing)
    w = w.float() + 1e-4
    return w / w.sum()


class BalancedSampler(Sampler):
    def __init__(self, labels: Sequence[int], weights: torch.Tensor, total: int, seed: int = 0):
        self.pools: List[List[int]] = [[] for _ in range(len(weights))]
        for i, y in enumerate(labels):
            self.pools[y].append(i)
        self.probs = weights.tolist()
        self.total = total
        self.rng = random.Random(seed)

    def __len__(self):
        return self.total

    def __iter__(self) -> Iterator[int]:
        order = range(len(self.pools))
        for _ in range(self.total):
            c = self.rng.choices(order, weights=[p * len(pool) for p, pool in zip(self.probs, self.pools)])[0]
            yield self.rng.choice(self.pools[c])


def batched(it: Iterator[int], size: int) -> Iterator[List[int]]:
    block: List[int] = []
    for v in it:
        block.append(v)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


class MLP(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Dropout(0.0), nn.Linear(16, classes))

    def forward(self, x):
        return self.f(x)


def recall_per_class(model: nn.Module, data: LongTail) -> List[float]:
    model.eval()
    with torch.no_grad():
        pred = model(data.x).argmax(1)
    model.train()
    return [(pred[data.y == c] == c).float().mean().item() for c in range(len(data.sizes))]


def main():
    torch.manual_seed(2)
    warnings.simplefilter("ignore")
    data = LongTail(OPTIONS["classes"], OPTIONS["head"], OPTIONS["decay"], seed=6)
    holdout = LongTail(OPTIONS["classes"], 20, 1.0, seed=6)
    print("train sizes", data.sizes)

    weights = class_weights(data.class_counts())
    print("class weights", [round(v, 3) for v in weights.tolist()])
    sampler = BalancedSampler(data.y.tolist(), weights, total=128)

    model = MLP(OPTIONS["classes"])
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen = Counter()
    for epoch in range(OPTIONS["epochs"]):
        for idx in batched(iter(sampler), OPTIONS["batch"]):
            x, y = data.x[idx], data.y[idx]
            seen.update(y.tolist())
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f} drawn {[seen[c] for c in range(OPTIONS['classes'])]}")
    recalls = recall_per_class(model, holdout)
    print("recall", [round(r, 2) for r in recalls], "mean", round(sum(recalls) / len(recalls), 3))


if __name__ == "__main__":
    main()
