"""Streaming audio denoiser: frames are taken from a ring buffer as windows, scaled in place, and added up again."""

import math
from collections import deque

import torch
from torch import Tensor, nn


class RingBuffer:
    def __init__(self, length: int):
        self.data = torch.zeros(length)
        self.position = 0

    def write(self, chunk: Tensor) -> None:
        for value in chunk:
            self.data[self.position % len(self.data)] = value
            self.position += 1

    def ordered(self) -> Tensor:
        start = self.position % len(self.data)
        return torch.cat([self.data[start:], self.data[:start]])


class NoiseEstimate(nn.Module):
    def __init__(self, bands: int, smoothing: float = 0.9):
        super().__init__()
        self.smoothing = smoothing
        self.register_buffer("floor", torch.full((bands,), 1e-3))

    def forward(self, energy: Tensor) -> Tensor:
        return torch.minimum(self.smoothing * self.floor + (1 - self.smoothing) * energy, energy)


class BaseStage(nn.Module):
    name: str = "base"

    def describe(self) -> str:
        return f"{self.name}({sum(p.numel() for p in self.parameters())} parameters)"


class Emphasis(BaseStage):
    name = "emphasis"

    def __init__(self, coefficient: float = 0.95):
        super().__init__()
        self.coefficient = coefficient

    def forward(self, signal: Tensor) -> Tensor:
        return torch.cat([signal[:1], signal[1:] - self.coefficient * signal[:-1]])


class FrameGain(BaseStage):
    """Scales short frames of the signal where they stand; between two frames there is a gap."""

    name = "gain"

    def __init__(self, frame: int, hop: int, gain_db: float = 6.0):
        super().__init__()
        self.frame, self.hop = frame, hop
        self.gain = 10 ** (gain_db / 20)

    def forward(self, signal: Tensor) -> Tensor:
        work = signal.clone()
        frames = work.unfold(-1, self.frame, self.hop)
        frames.mul_(self.gain)
        return work


class SoftLimit(BaseStage):
    name = "limit"

    def __init__(self, threshold: float = 4.0):
        super().__init__()
        self.threshold = threshold

    def forward(self, signal: Tensor) -> Tensor:
        return self.threshold * torch.tanh(signal / self.threshold)


class Denoiser(nn.Module):
    def __init__(self, frame: int = 3, hop: int = 5, use_emphasis: bool = True, limit: float | None = None):
        super().__init__()
        stages = [FrameGain(frame, hop), SoftLimit(limit if limit is not None else 4.0)]
        if use_emphasis:
            stages.insert(0, Emphasis())
        self.stages = nn.Sequential(*stages)
        self.noise = NoiseEstimate(1)

    def forward(self, signal: Tensor):
        energy = signal.pow(2).mean().reshape(1)
        floor = self.noise(energy)
        out = self.stages(signal)
        return out, {"energy": energy, "floor": floor, "peak": out.abs().max()}


def tone(length: int, frequency: float, rate: float = 100.0) -> Tensor:
    t = torch.arange(length) / rate
    return torch.sin(2 * math.pi * frequency * t) + 0.1 * torch.cos(2 * math.pi * 3 * frequency * t)


def stream(model, chunks: int, length: int):
    buffer, recent = RingBuffer(length), deque(maxlen=4)
    for index in range(chunks):
        buffer.write(tone(length // 2, 5.0 + index))
        out, info = model(buffer.ordered())
        recent.append({name: float(value) for name, value in info.items()})
    return out, list(recent)


def run():
    torch.manual_seed(0)
    model = Denoiser()
    print(" -> ".join(stage.describe() for stage in model.stages))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        reference, log = stream(model, 3, 24)
        output, other = stream(compiled, 3, 24)
    for one, two in zip(log, other):
        print(one, two)
    worst = (reference - output).abs().max().item()
    print("largest difference", worst)
    return worst


if __name__ == "__main__":
    assert run() < 1e-4
