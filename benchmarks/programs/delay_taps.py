# torch: 2.13.0
# Karplus-Strong like string model.  The delay line is one buffer, the pick-up reads from
# a view of it which starts some samples later, the feed-back is written in place.
from __future__ import annotations

import itertools
import math
import typing as tp

import torch
import torch.nn as nn

LENGTH = 12          # samples in the delay line
PICKUP = 3           # where the pick-up sits
BLOCK = 4            # samples per rendered block
dtype = torch.float64


class Envelope:
    """Attack / release as a python generator of gains"""

    def __init__(self, attack: int, release: int) -> None:
        self.attack = attack
        self.release = release

    def __iter__(self) -> tp.Iterator[float]:
        for i in range(self.attack):
            yield (i + 1) / self.attack
        for i in itertools.count():
            yield math.exp(-i / self.release)


class Excitation(nn.Module):
    kinds = ("noise", "ramp", "click")

    def __init__(self, kind: str = "ramp") -> None:
        super().__init__()
        if kind not in self.kinds:
            raise ValueError(kind)
        self.kind = kind

    def forward(self, n: int) -> torch.Tensor:
        if self.kind == "noise":
            return torch.rand(n, dtype=dtype) * 2 - 1
        if self.kind == "click":
            x = torch.zeros(n, dtype=dtype)
            x[n // 3] = 1.0
            return x
        return torch.linspace(-1, 1, n, dtype=dtype)


class Loss(nn.Module):
    """Two point average, damps the high partials"""

    def __init__(self, damping: float = 0.99) -> None:
        super().__init__()
        self.register_buffer("damping", torch.tensor(damping, dtype=dtype))

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        return self.damping * 0.5 * (line + line.roll(1))


class String(nn.Module):
    def __init__(self, length: int = LENGTH, pickup: int = PICKUP) -> None:
        super().__init__()
        self.register_buffer("line", torch.zeros(length, dtype=dtype))
        self.pickup = pickup
        self.loss = Loss()
        self.tick = torch.compile(self._tick, backend="aot_eager")

    def _tick(self, line: torch.Tensor, tap: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        """One revolution of the delay line; what the pick-up hears."""
        line.add_(update)
        return tap[:BLOCK]

    @property
    def tap(self) -> torch.Tensor:
        return self.line[self.pickup:]

    @torch.no_grad()
    def pluck(self, shape: torch.Tensor) -> None:
        self.line.copy_(shape)

    @torch.no_grad()
    def render(self, blocks: int) -> tp.Iterator[torch.Tensor]:
        for _ in range(blocks):
            update = self.loss(self.line) - self.line
            heard = self.tick(self.line, self.tap, update)
            yield heard.clone()


class Body(nn.Module):
    """A couple of resonances, stands for the wood."""

    def __init__(self, modes: tp.Sequence[tuple[float, float]]) -> None:
        super().__init__()
        self.filters = nn.ModuleList()
        for freq, gain in modes:
            conv = nn.Conv1d(1, 1, 3, padding=1, bias=False, dtype=dtype)
            with torch.no_grad():
                k = torch.tensor([0.0, 1.0, math.cos(freq)], dtype=dtype)
                conv.weight.copy_(gain * k.view(1, 1, 3))
            self.filters.append(conv)

    def forward(self, sig: torch.Tensor) -> torch.Tensor:
        x = sig.view(1, 1, -1)
        wet = sum(f(x) for f in self.filters)
        return (x + wet).view(-1)


class Voice:
    def __init__(self, kind: str) -> None:
        self.string = String()
        self.body = Body([(0.4, 0.2), (1.1, 0.1)])
        self.exc = Excitation(kind)
        self.env = Envelope(attack=2, release=9)

    @torch.no_grad()
    def play(self, blocks: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.string.pluck(self.exc(LENGTH))
        dry = torch.cat([g * b for g, b in zip(self.env, self.string.render(blocks))])
        return dry, self.body(dry)


def level(sig: torch.Tensor) -> float:
    rms = sig.pow(2).mean().sqrt().item()
    return 20 * math.log10(max(rms, 1e-9))


def zero_crossings(sig: torch.Tensor) -> int:
    s = torch.sign(sig)
    return int((s[1:] * s[:-1] < 0).sum())


def ascii_plot(sig: torch.Tensor, height: int = 5) -> str:
    peak = sig.abs().max().clamp_min(1e-9)
    rows = ((sig / peak + 1) / 2 * (height - 1)).round().long().tolist()
    return "\n".join("".join("o" if r == h else " " for r in rows) for h in reversed(range(height)))


def main() -> None:
    for kind in ("ramp", "click"):
        voice = Voice(kind)
        dry, wet = voice.play(3)
        print(f"--- {kind}: dry {level(dry):.2f} dB, wet {level(wet):.2f} dB, {zero_crossings(dry)} crossings")
        print(ascii_plot(dry))


if __name__ == "__main__":
    main()
