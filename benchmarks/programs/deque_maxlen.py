# torch: 2.8.0
"""Streaming vibration monitor: synthesise a sensor signal, cut it in frames,
smooth the frame energies and raise alarms with hysteresis."""
import collections
import enum
import math
from dataclasses import dataclass, field
from typing import Iterator, List

import torch


class State(enum.Enum):
    QUIET = "quiet"
    WATCH = "watch"
    ALARM = "alarm"

    @property
    def severity(self) -> int:
        return {"quiet": 0, "watch": 1, "alarm": 2}[self.value]


@dataclass
class MonitorConfig:
    sample_rate: int = 400
    frame: int = 64
    hop: int = 32
    smooth: int = 3
    n_frames: int = 24
    watch_level: float = 1.0
    alarm_level: float = 1.8
    backend: str = "eager"


@dataclass
class Event:
    index: int
    state: State
    level: float

    def __str__(self):
        return f"[{self.index:03d}] {self.state.name:<5} {self.level:.4f}"


@dataclass
class History:
    events: List[Event] = field(default_factory=list)
    peak: float = 0.0

    def push(self, ev: Event):
        if not self.events or self.events[-1].state is not ev.state:
            self.events.append(ev)
        self.peak = max(self.peak, ev.level)

    def __len__(self):
        return len(self.events)


class Synth:
    """A deterministic machine: two harmonics, noise and one fault burst."""

    def __init__(self, cfg: MonitorConfig, seed: int = 11):
        self.cfg = cfg
        self.gen = torch.Generator().manual_seed(seed)

    def signal(self) -> torch.Tensor:
        n = self.cfg.hop * self.cfg.n_frames + self.cfg.frame
        t = torch.arange(n, dtype=torch.float32) / self.cfg.sample_rate
        base = torch.sin(2 * math.pi * 17 * t) + 0.3 * torch.cos(2 * math.pi * 51 * t)
        noise = 0.05 * torch.randn(n, generator=self.gen)
        burst = torch.zeros(n)
        burst[n // 2: n // 2 + 120] = 1.7
        return base * (1 + burst) + noise


def frames(sig: torch.Tensor, size: int, hop: int) -> Iterator[torch.Tensor]:
    for start in range(0, len(sig) - size + 1, hop):
        yield sig[start:start + size]


class EnergyTracker:
    def __init__(self, cfg: MonitorConfig):
        self.cfg = cfg
        self.window = torch.hann_window(cfg.frame)
        self.norm = self.window.square().sum()
        self.track = torch.compile(self._track, backend=cfg.backend)

    def energy(self, frame: torch.Tensor) -> torch.Tensor:
        centred = frame - frame.mean()
        return (centred * self.window).square().sum() / self.norm

    def _track(self, block: torch.Tensor):
        """Moving average of the frame energies of one block."""
        recent = collections.deque(maxlen=self.cfg.smooth)
        levels = []
        for row in block.unbind(0):
            e = self.energy(row)
            recent.append(e)
            levels.append(sum(recent) / self.cfg.smooth)
        crest = block.abs().amax(dim=1) / block.square().mean(dim=1).sqrt()
        return torch.stack(levels), crest


class Hysteresis:
    def __init__(self, cfg: MonitorConfig):
        self.cfg, self.state = cfg, State.QUIET

    def step(self, level: float) -> State:
        if level > self.cfg.alarm_level:
            self.state = State.ALARM
        elif level > self.cfg.watch_level:
            if self.state is not State.ALARM:
                self.state = State.WATCH
        else:
            self.state = State.QUIET
        return self.state


def spectrum_summary(sig: torch.Tensor, rate: int):
    mag = torch.fft.rfft(sig).abs()
    top = mag[1:].topk(2).indices + 1
    return [round(float(i) * rate / len(sig), 1) for i in top]


def main():
    cfg = MonitorConfig()
    sig = Synth(cfg).signal()
    print("dominant Hz:", spectrum_summary(sig, cfg.sample_rate))
    tracker, hyst, hist = EnergyTracker(cfg), Hysteresis(cfg), History()

    buf, index = [], 0
    for fr in frames(sig, cfg.frame, cfg.hop):
        buf.append(fr)
        if len(buf) < 8:
            continue
        levels, crest = tracker.track(torch.stack(buf))
        for lv, cr in zip(levels.tolist(), crest.tolist()):
            state = hyst.step(lv)
            hist.push(Event(index, state, lv))
            index += 1
        print(f"block ending at {index}: crest {crest.mean():.3f}")
        buf.clear()

    for ev in hist.events:
        print(ev)
    print("peak level", round(hist.peak, 4), "events", len(hist))
    print("worst", max((e.state for e in hist.events), key=lambda s: s.severity).name)


if __name__ == "__main__":
    main()
