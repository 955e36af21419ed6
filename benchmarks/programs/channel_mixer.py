"""Stereo channel mixing with an effect chain, written around IntEnum ids."""
import enum
from contextlib import contextmanager

import torch
from torch import nn


class Channel(enum.IntEnum):
    LEFT = 0
    RIGHT = 1
    CENTER = 2


class Stage(enum.Enum):
    DRY = "dry"
    WET = "wet"


GAINS = [0.8, 0.6, 1.0]


class Effect(nn.Module):
    stage = Stage.DRY

    def process(self, signal, channel):
        raise NotImplementedError

    def forward(self, signal, channel):
        return self.process(signal, channel)


class Echo(Effect):
    stage = Stage.WET

    def __init__(self, delay, decay):
        super().__init__()
        self.delay = delay
        self.decay = nn.Parameter(torch.tensor(decay))

    def process(self, signal, channel):
        tail = torch.zeros_like(signal)
        tail[self.delay:] = signal[:-self.delay]
        return signal + self.decay * tail


class Gain(Effect):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def process(self, signal, channel):
        return signal * self.table[channel]


class Clip(Effect):
    def process(self, signal, channel):
        return torch.tanh(signal)


class Mixer(nn.Module):
    def __init__(self, *effects):
        super().__init__()
        self.effects = nn.ModuleList(effects)
        self.bypass = set()

    @contextmanager
    def without(self, stage):
        self.bypass.add(stage)
        try:
            yield self
        finally:
            self.bypass.discard(stage)

    def forward(self, tracks):
        mixed = []
        for channel, signal in tracks.items():
            for effect in self.effects:
                if effect.stage not in self.bypass:
                    signal = effect(signal, channel)
            mixed.append(signal)
        return torch.stack(mixed).mean(0)


def make_tracks(n=64):
    t = torch.linspace(0, 1, n)
    return {
        Channel.LEFT: torch.sin(20 * t),
        Channel.RIGHT: torch.cos(31 * t),
        Channel.CENTER: 2 * t - 1,
    }


def main():
    mixer = Mixer(Echo(5, 0.4), Gain(GAINS), Clip())
    render = torch.compile(mixer, backend="eager")
    tracks = make_tracks()
    wet = render(tracks)
    with mixer.without(Stage.WET):
        dry = mixer(tracks)
    wet.square().mean().backward()
    print("rms", round(wet.square().mean().sqrt().item(), 5))
    print("diff", round((wet - dry).abs().max().item(), 5))
    print("grad", round(mixer.effects[0].decay.grad.item(), 6))


if __name__ == "__main__":
    main()
