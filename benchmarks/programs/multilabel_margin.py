# torch: 2.13.0
"""Train a small tagger: each clip carries a padded list of tag ids."""
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class TrainConfig:
    n_tags: int = 6
    features: int = 10
    samples: int = 24
    batch_size: int = 8
    epochs: int = 2
    lr: float = 0.05
    backend: str = "aot_eager"
    seed: int = 21


class TagDataset(Dataset):
    """Targets have the tag ids first, then an end marker, then the rejected tags."""

    def __init__(self, cfg):
        rng = random.Random(cfg.seed)
        g = torch.Generator().manual_seed(cfg.seed)
        self.x = torch.randn(cfg.samples, cfg.features, generator=g)
        rows = []
        for _ in range(cfg.samples):
            k = rng.randint(1, 3)
            ids = rng.sample(range(cfg.n_tags), cfg.n_tags - 1)
            rows.append(ids[:k] + [-1] + ids[k:])
        self.y = torch.tensor(rows)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        return x * torch.sigmoid(self.proj(x))


class Tagger(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = nn.Linear(cfg.features, 12)
        self.blocks = nn.ModuleList([Gate(12) for _ in range(2)])
        self.head = nn.Linear(12, cfg.n_tags)

    def forward(self, x):
        h = torch.tanh(self.stem(x))
        for block in self.blocks:
            h = h + block(h)
        return self.head(h)


class Objective(nn.Module):
    def __init__(self, model, l2=1e-3):
        super().__init__()
        self.model = model
        self.rank_loss = nn.MultiLabelMarginLoss()
        self.l2 = l2

    def penalty(self):
        return sum(p.square().sum() for p in self.model.parameters())

    def forward(self, x, y):
        logits = self.model(x)
        return self.rank_loss(logits, y) + self.l2 * self.penalty()


class Trainer:
    def __init__(self, cfg, compiled):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.model = Tagger(cfg)
        self.objective = Objective(self.model)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=0.9)
        self.forward = self.objective
        if compiled:
            self.forward = torch.compile(self.objective, backend=cfg.backend)
        self.curve = []

    def fit(self, data):
        loader = DataLoader(data, batch_size=self.cfg.batch_size, shuffle=False)
        for _ in range(self.cfg.epochs):
            for x, y in loader:
                self.opt.zero_grad()
                loss = self.forward(x, y)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.curve.append(loss.item())
        return self.curve


def main():
    cfg = TrainConfig()
    data = TagDataset(cfg)
    plain = Trainer(cfg, False)
    fast = Trainer(cfg, True)
    a, b = plain.fit(data), fast.fit(data)
    print("eager   ", [round(v, 4) for v in a])
    print("compiled", [round(v, 4) for v in b])
    torch.testing.assert_close(torch.tensor(b), torch.tensor(a), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    main()
