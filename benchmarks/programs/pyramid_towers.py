"""Image pyramid: the first level is refined, the rest are only pooled."""
from dataclasses import dataclass, field
from typing import List

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class PyramidConfig:
    in_ch: int = 2
    width: int = 4
    levels: int = 3
    kernel: int = 3
    names: List[str] = field(default_factory=lambda: ["fine", "mid", "coarse"])

    def __post_init__(self):
        assert self.levels == len(self.names)


class Refine(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        pad = cfg.kernel // 2
        self.body = nn.Sequential(
            nn.Conv2d(cfg.in_ch, cfg.width, cfg.kernel, padding=pad),
            nn.ReLU(),
            nn.Conv2d(cfg.width, cfg.in_ch, cfg.kernel, padding=pad),
        )

    def forward(self, x):
        return x + self.body(x)


class Pyramid(nn.Module):
    def __init__(self, cfg: PyramidConfig):
        super().__init__()
        self.cfg = cfg
        self.refine = Refine(cfg)
        self.weights = nn.Parameter(torch.ones(cfg.levels + 1) / (cfg.levels + 1))

    def levels(self, x):
        out = [x]
        for _ in range(self.cfg.levels - 1):
            out.append(F.avg_pool2d(out[-1], 2))
        return out

    def forward(self, x):
        first, *rest = self.levels(x)
        rest.append(self.refine(first))
        feats = [f.mean(dim=(2, 3)) for f in rest]
        feats.insert(0, first.amax(dim=(2, 3)))
        mix = 0
        for w, f in zip(self.weights, feats):
            mix = mix + w * f
        return mix


class Trainer:
    def __init__(self, model, lr=0.01):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.log = []

    def fit(self, batches):
        for step, (x, y) in enumerate(batches):
            self.opt.zero_grad(set_to_none=True)
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            self.opt.step()
            self.log.append((step, loss.item()))
        return self


def batches(cfg, n=3):
    g = torch.Generator().manual_seed(2)
    for _ in range(n):
        x = torch.rand(2, cfg.in_ch, 8, 8, generator=g)
        yield x, x.mean(dim=(2, 3)) * 2


if __name__ == "__main__":
    cfg = PyramidConfig()
    torch.manual_seed(0)
    model = Pyramid(cfg)
    model.compile(backend="eager")
    trainer = Trainer(model).fit(batches(cfg))
    for step, loss in trainer.log:
        print(f"step {step}: {loss:.4f}")
    assert len(trainer.log) == 3
