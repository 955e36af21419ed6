# torch: 2.8.0
# Periodic window gating of audio-like signals: every `period` samples the first
# `width` samples are attenuated in place (a crude tremolo), then the signal goes
# through a filter bank, and a linear probe guesses which of the tones was played.
#
# usage: python window_gate.py
import math
from functools import partial
from typing import Callable, Dict, List, Sequence, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SAMPLE_RATE = 64
TONES = (3.0, 5.0, 9.0)

#: name -> in-place effect on (batch, time)
EFFECTS: Dict[str, Callable[..., torch.Tensor]] = {}


def effect(name: str, **defaults):
    """Register an in-place effect under `name`, with default settings."""

    def wrap(fn):
        EFFECTS[name] = partial(fn, **defaults)
        return fn

    return wrap


@effect("gain", db=-3.0)
def gain(sig: torch.Tensor, db: float) -> torch.Tensor:
    return sig.mul_(10 ** (db / 20))


@effect("dc", level=0.05)
def add_dc(sig: torch.Tensor, level: float) -> torch.Tensor:
    return sig.add_(level)


@effect("tremolo", width=2, period=5, depth=0.4)
def tremolo(sig: torch.Tensor, width: int, period: int, depth: float) -> torch.Tensor:
    # views, so that nothing is copied on long recordings
    frames = sig.unfold(-1, width, period)
    frames.mul_(1.0 - depth)
    return sig


@effect("clip", limit=1.2)
def soft_limit(sig: torch.Tensor, limit: float) -> torch.Tensor:
    return sig.clamp_(-limit, limit)


class Chain:
    """Applies effects one after the other, all of them in place."""

    def __init__(self, names: Sequence[str]) -> None:
        unknown = [n for n in names if n not in EFFECTS]
        if unknown:
            raise KeyError(f"no such effect: {unknown}")
        self.names = list(names)
        self.steps = [EFFECTS[n] for n in self.names]

    def __call__(self, sig: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            sig = step(sig)
        return sig

    def __str__(self) -> str:
        return " -> ".join(self.names)


class Tones(Dataset):
    def __init__(self, count: int, length: int = SAMPLE_RATE) -> None:
        self.count = count
        self.t = torch.arange(length) / SAMPLE_RATE

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Tuple[torch.Tensor, int]:
        label = i % len(TONES)
        phase = (i * 0.37) % (2 * math.pi)
        tone = torch.sin(2 * math.pi * TONES[label] * self.t + phase)
        return tone + 0.01 * torch.randn_like(tone), label


class FilterBank(nn.Module):
    """Fixed windowed-cosine filters and a learned mixing of their energies."""

    def __init__(self, taps: int = 16) -> None:
        super().__init__()
        n = torch.arange(taps) / SAMPLE_RATE
        win = torch.hann_window(taps, periodic=False)
        bank = torch.stack([torch.cos(2 * math.pi * f * n) * win for f in TONES])
        self.register_buffer("bank", bank.unsqueeze(1))
        self.mix = nn.Parameter(torch.eye(len(TONES)))

    def forward(self, sig: torch.Tensor) -> torch.Tensor:
        bands = F.conv1d(sig.unsqueeze(1), self.bank, stride=4)
        energy = bands.pow(2).mean(-1).add(1e-6).log()
        return energy @ self.mix


class Probe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bank = FilterBank()
        self.drop = nn.Dropout(0.0)
        self.head = nn.Linear(len(TONES), len(TONES))

    def forward(self, sig: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.bank(sig)))


def rms(sig: torch.Tensor) -> float:
    return float(sig.pow(2).mean().sqrt())


def crest(sig: torch.Tensor) -> float:
    """Peak over rms, a usual loudness figure"""
    return float(sig.abs().amax()) / max(rms(sig), 1e-9)


@torch.compile(backend="aot_eager")
def process(chain: Chain, sig: torch.Tensor) -> None:
    chain(sig)


def silent_share(sig: torch.Tensor) -> float:
    return float((sig == 0).float().mean())


def run_epoch(model: Probe, chain: Chain, loader: DataLoader, opt) -> List[str]:
    lines = []
    for b, (sig, label) in enumerate(loader):
        before = rms(sig)
        process(chain, sig)
        loss = F.cross_entropy(model(sig), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        lines.append(
            f"batch {b}: rms {before:.3f} -> {rms(sig):.3f} crest {crest(sig):.2f} "
            f"silent {silent_share(sig):.0%} loss {loss.item():.3f}"
        )
    return lines


def main() -> None:
    chain = Chain(["gain", "dc", "tremolo", "clip"])
    print("chain:", chain)
    model = Probe()
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    loader = DataLoader(Tones(8), batch_size=4, shuffle=False)
    for epoch in range(2):
        for line in run_epoch(model, chain, loader, opt):
            print(f"[{epoch}] {line}")


if __name__ == "__main__":
    main()
