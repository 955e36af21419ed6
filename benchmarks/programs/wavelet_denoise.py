"""Haar wavelet denoising of a signal with missing samples."""
import dataclasses
import itertools
import math

import torch
import torch.nn as nn


@dataclasses.dataclass(frozen=True)
class Settings:
    length: int = 32
    levels: int = 2
    threshold: float = 0.2
    missing: tuple = (5, 20)
    noise: float = 0.05


class Haar(nn.Module):
    s = 1 / math.sqrt(2)

    def forward(self, x):
        even, odd = x[..., 0::2], x[..., 1::2]
        return (even + odd) * self.s, (even - odd) * self.s

    def inverse(self, low, high):
        even, odd = (low + high) * self.s, (low - high) * self.s
        return torch.stack([even, odd], dim=-1).flatten(-2)


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.haar = Haar()
        self.shrink = nn.Softshrink(cfg.threshold)

    def forward(self, x):
        details = []
        for _ in range(self.cfg.levels):
            x, high = self.haar(x)
            details.append(self.shrink(high))
        return x, tuple(details)

    @torch.no_grad()
    def reconstruct(self, low, details):
        for high in reversed(details):
            low = self.haar.inverse(low, high)
        return low


def signal(cfg):
    g = torch.Generator().manual_seed(13)
    t = torch.arange(cfg.length) / cfg.length
    x = torch.sin(2 * math.pi * 3 * t) + cfg.noise * torch.randn(cfg.length, generator=g)
    for k in cfg.missing:
        x[k] = math.nan
    return x


def missing_mask(details):
    return [d.isnan() for d in details]


def summarize(tag, details):
    counts = [int(m.sum()) for m in missing_mask(details)]
    cum = list(itertools.accumulate(counts))
    print(f"{tag:<9} missing per level {counts}, cumulated {cum}")
    return counts


def main():
    cfg = Settings()
    model = Denoiser(cfg)
    x = signal(cfg)

    low, details = model(x)
    want = summarize("eager", details)
    assert want == [len(cfg.missing)] * cfg.levels

    fast = torch.compile(model)
    low2, details2 = fast(x)
    got = summarize("compiled", details2)
    torch.testing.assert_close(low, low2, equal_nan=True)
    print("restored:", model.reconstruct(low, details).isnan().sum().item(), "missing samples")
    assert want == got, "missing detail coefficients were filled in"


if __name__ == "__main__":
    main()
