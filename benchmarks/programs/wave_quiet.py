"""Voice activity pipeline: find peaks, choose a gate, average the frames."""
import math
from collections import namedtuple

import torch
import torch.nn as nn

Segment = namedtuple("Segment", ["begin", "end", "label"])


def tone(freq, n, rate=800.0, gain=1.0):
    t = torch.arange(n, dtype=torch.float32) / rate
    return gain * torch.sin(2 * math.pi * freq * t)


def recordings():
    quiet = torch.zeros(160)
    yield "speech", torch.cat([quiet, tone(90, 320), quiet]), [
        Segment(160, 480, "voice"), Segment(0, 160, "pause")]
    yield "hum", tone(50, 640, gain=0.2), [Segment(0, 640, "pause")]
    yield "burst", torch.cat([tone(200, 160, gain=0.7), quiet]), [
        Segment(0, 100, "voice"), Segment(100, 160, "voice"),
        Segment(160, 320, "pause")]


class Framer(nn.Module):
    def __init__(self, width, hop):
        super().__init__()
        self.width, self.hop = width, hop
        self.register_buffer("window", torch.hann_window(width))

    def forward(self, wave):
        frames = wave.unfold(0, self.width, self.hop)
        return frames * self.window


class Gate(nn.Module):
    """Keeps frames above a floor given by the shortest voiced segment."""

    def __init__(self, fallback=16):
        super().__init__()
        self.fallback = fallback

    def shortest(self, segments):
        lengths = [s.end - s.begin for s in segments if s.label == "voice"]
        try:
            return min(lengths)
        except ValueError:
            return self.fallback

    def forward(self, energy, segments):
        n = self.shortest(segments)
        floor = energy.mean() / (1.0 + math.log(n))
        return (energy > floor).to(energy.dtype)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.framer = Framer(64, 32)
        self.gate = Gate()

    def forward(self, wave, segments):
        energy = self.framer(wave).square().mean(dim=1)
        keep = self.gate(energy, segments)
        total = keep.sum().clamp(min=1.0)
        return (energy * keep).sum() / total, keep.mean()


def evaluate(detector):
    table = {}
    for name, wave, segments in recordings():
        level, share = detector(wave, segments)
        table[name] = (round(level.item(), 4), round(share.item(), 4))
    return table


if __name__ == "__main__":
    detector = torch.compile(Detector().eval(), backend="eager")
    with torch.no_grad():
        for key, row in evaluate(detector).items():
            print(f"{key:>8}: level={row[0]:.4f} share={row[1]:.4f}")
