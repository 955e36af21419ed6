# torch: 2.8.0
"""Replay of a recorded sensor stream through a small online calibration filter.

The stream is read in frames from a fake device.  A calibration pass looks for
the first frame whose energy lies under a threshold and releases the device.
"""
import math
from dataclasses import dataclass, field

import torch


@dataclass
class DeviceState:
    opened: int = 0
    released: int = 0
    journal: list = field(default_factory=list)

    def note(self, what):
        self.journal.append((len(self.journal), what))


@dataclass
class StreamConfig:
    channels: int = 4
    frame_len: int = 8
    frames: int = 6
    threshold: float = 2.5
    gain: float = 0.75


def synth_recording(cfg):
    t = torch.arange(cfg.frames * cfg.frame_len, dtype=torch.float32)
    base = torch.stack([torch.sin(t * (0.1 + 0.05 * c)) for c in range(cfg.channels)])
    decay = torch.exp(-t / 16.0)
    return base * decay


class Device:
    def __init__(self, recording, cfg, state):
        self.recording = recording
        self.cfg = cfg
        self.state = state

    def frames(self):
        self.state.opened += 1
        self.state.note("open")
        try:
            for i in range(self.cfg.frames):
                lo = i * self.cfg.frame_len
                yield i, self.recording[:, lo:lo + self.cfg.frame_len]
        finally:
            self.state.released += 1
            self.state.note("release")


class Calibrator:
    def __init__(self, cfg):
        self.cfg = cfg
        self.offset = torch.zeros(cfg.channels)

    def window(self):
        n = self.cfg.frame_len
        k = torch.arange(n, dtype=torch.float32)
        return 0.5 - 0.5 * torch.cos(2 * math.pi * k / (n - 1))

    def apply(self, frame):
        return (frame - self.offset[:, None]) * self.window() * self.cfg.gain


@torch.compile(backend="eager")
def calibrate(device, cal, limit):
    total = torch.zeros(cal.cfg.channels)
    used = 0
    for idx, frame in device.frames():
        filtered = cal.apply(frame)
        total = total + filtered.sum(dim=1)
        used = used + 1
        if idx == limit:
            device.state.note("stop")
            break
    device.state.note("calibrated")
    return total / used, used


@torch.compile(backend="eager")
def residual(recording, offset):
    centred = recording - offset[:, None]
    return centred.pow(2).mean(dim=1).sqrt()


def main():
    cfg = StreamConfig()
    state = DeviceState()
    recording = synth_recording(cfg)
    device = Device(recording, cfg, state)
    cal = Calibrator(cfg)
    for limit in (2, 3):
        mean, used = calibrate(device, cal, limit)
        cal.offset = cal.offset + 0.5 * mean
        print(f"limit={limit} used={used} mean={[round(v, 4) for v in mean.tolist()]}")
    rms = residual(recording, cal.offset)
    print("rms", [round(v, 4) for v in rms.tolist()])
    print("opened", state.opened)
    for pos, what in state.journal:
        print(f"  {pos:02d} {what}")


if __name__ == "__main__":
    main()
