# torch: 2.13.0
import argparse
import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    rate: int = 8000
    frame: int = 256
    gain: float = 2.0
    seed: int = 3
    clips: int = 4


class Tone:
    def __init__(self, frequency, amplitude):
        self.frequency = frequency
        self.amplitude = amplitude

    def render(self, length, rate):
        time = torch.arange(length) / rate
        return self.amplitude * torch.sin(2 * math.pi * self.frequency * time)


class Burst(Tone):
    def __init__(self, frequency, amplitude, spread):
        super().__init__(frequency, amplitude)
        self.spread = spread

    def render(self, length, rate):
        base = super().render(length, rate)
        return base + self.spread * torch.rand(length)


class Gain(nn.Module):
    def __init__(self, amount):
        super().__init__()
        self.amount = amount

    def forward(self, x):
        return x * self.amount


class Offset(nn.Module):
    def __init__(self, amount):
        super().__init__()
        self.amount = amount

    def forward(self, x):
        return x + self.amount


class Meter(nn.Module):
    def forward(self, x):
        level = x.float()
        return level, level.abs().amax(dim=-1)


class Chain(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.stages = nn.Sequential(Offset(16.0), Gain(settings.gain))
        self.meter = Meter()

    def forward(self, frame):
        return self.meter(self.stages(frame))


class Limiter:
    def __init__(self, settings):
        self.settings = settings
        self.chain = Chain(settings)
        self.process = torch.compile(self.chain)
        self.rejected = []
        self.levels = []

    def accept(self, index, frame):
        level, peak = self.process(frame)
        clean = bool(torch.isfinite(level).all())
        if not clean:
            self.rejected.append(index)
        else:
            self.levels.append(round(peak.item(), 1))
        return clean


def frames(settings):
    tones = [
        Tone(440.0, 900.0),
        Burst(220.0, 500.0, 300.0),
        Burst(880.0, 1000.0, 41000.0),
        Tone(110.0, 20000.0),
    ]
    for tone in tones[: settings.clips]:
        yield tone.render(settings.frame, settings.rate).half()


def headroom(frame, gain):
    limit = torch.finfo(torch.float16).max / gain
    return bool((frame.float().abs() < limit - 100).all())


def build_settings():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gain", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=3)
    parsed = parser.parse_args([])
    return Settings(gain=parsed.gain, seed=parsed.seed)


def main():
    settings = build_settings()
    torch.manual_seed(settings.seed)
    limiter = Limiter(settings)
    loud = []
    with torch.no_grad():
        for index, frame in enumerate(frames(settings)):
            if not headroom(frame, settings.gain):
                loud.append(index)
            limiter.accept(index, frame)
    assert loud == [2]
    assert len(limiter.levels) + len(limiter.rejected) == settings.clips
    if limiter.rejected != loud:
        raise RuntimeError(f"rejected {limiter.rejected}, loud {loud}, levels {limiter.levels}")
    print("levels", limiter.levels)


if __name__ == "__main__":
    main()
