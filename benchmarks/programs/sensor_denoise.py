# torch: 2.13.0
"""Wavelet-style denoising of multi channel sensor logs with a validity report."""
import argparse
import dataclasses
import math
from typing import Dict, Iterator, List, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class DenoiseConfig:
    channels: int = 4
    length: int = 64
    levels: int = 2
    threshold: float = 0.15
    seed: int = 11
    dropout_rate: float = 0.04


class SensorLog:
    """Synthetic log. Lost packets come as NaN, as they do on the real bus."""

    def __init__(self, cfg: DenoiseConfig) -> None:
        self.cfg = cfg
        self.gen = torch.Generator().manual_seed(cfg.seed)

    def __iter__(self) -> Iterator[torch.Tensor]:
        for phase in (0.0, 0.7, 1.9):
            t = torch.linspace(0, 4 * math.pi, self.cfg.length)
            freqs = torch.arange(1, self.cfg.channels + 1).unsqueeze(1)
            clean = torch.sin(freqs * t.unsqueeze(0) + phase)
            noise = 0.1 * torch.randn(clean.shape, generator=self.gen)
            lost = torch.rand(clean.shape, generator=self.gen) < self.cfg.dropout_rate
            yield torch.where(lost, torch.full_like(clean, float("nan")), clean + noise)


class HaarSplit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(1.0 / math.sqrt(2.0)))

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        even, odd = x[..., 0::2], x[..., 1::2]
        return (even + odd) * self.scale, (even - odd) * self.scale


class HaarMerge(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(1.0 / math.sqrt(2.0)))

    def forward(self, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        even = (low + high) * self.scale
        odd = (low - high) * self.scale
        return torch.stack([even, odd], dim=-1).flatten(-2)


class Shrinker(nn.Module):
    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, coeff: torch.Tensor) -> torch.Tensor:
        return F.softshrink(coeff, self.threshold)


class Denoiser(nn.Module):
    def __init__(self, cfg: DenoiseConfig) -> None:
        super().__init__()
        self.levels = cfg.levels
        self.split = HaarSplit()
        self.merge = HaarMerge()
        self.shrink = nn.ModuleList(
            Shrinker(cfg.threshold / (lvl + 1)) for lvl in range(cfg.levels)
        )

    def forward(self, x: torch.Tensor) -> Dict[str, torch.Tensor]:
        low = x
        details: List[torch.Tensor] = []
        for lvl in range(self.levels):
            low, high = self.split(low)
            details.append(self.shrink[lvl](high))
        bad = torch.zeros(x.shape[0], dtype=torch.int64)
        energy = torch.zeros(x.shape[0])
        for d in details:
            bad = bad + d.isnan().sum(dim=-1)
            energy = energy + torch.nan_to_num(d).square().sum(dim=-1)
        out = low
        for d in reversed(details):
            out = self.merge(out, d)
        return {"signal": out, "bad": bad, "energy": energy}


def summarise(name: str, results: List[Dict[str, torch.Tensor]]) -> torch.Tensor:
    total = torch.stack([r["bad"] for r in results]).sum(0)
    energy = torch.stack([r["energy"] for r in results]).mean(0)
    for ch, (b, e) in enumerate(zip(total.tolist(), energy.tolist())):
        print(f"  {name:>8} channel {ch}: invalid coefficients={b:3d} energy={e:8.3f}")
    return total


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--levels", type=int, default=2)
    ap.add_argument("--backend", default="inductor")
    args = ap.parse_args()
    cfg = DenoiseConfig(levels=args.levels)
    model = Denoiser(cfg).eval()
    fast = torch.compile(model, backend=args.backend)
    with torch.no_grad():
        ref = [model(x) for x in SensorLog(cfg)]
        got = [fast(x) for x in SensorLog(cfg)]
    a = summarise("eager", ref)
    b = summarise("compiled", got)
    for r, g in zip(ref, got):
        torch.testing.assert_close(r["energy"], g["energy"])
    assert torch.equal(a, b), f"invalid coefficient counts differ: {a.tolist()} vs {b.tolist()}"
    print("ok")


if __name__ == "__main__":
    main()
