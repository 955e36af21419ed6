# torch: 2.8.0
"""Oscillator bank: long running phases are wrapped before synthesis."""
import argparse
import math
import textwrap

import torch
import torch.nn as nn


class PhaseAccumulator(nn.Module):
    def __init__(self, freqs, period):
        super().__init__()
        self.register_buffer("freqs", freqs)
        self.period = period

    def forward(self, ticks):
        phase = self.freqs[:, None] * ticks[None, :]
        return phase % self.period


class Shaper(nn.Module):
    """Piecewise linear triangle wave from a wrapped phase."""

    def __init__(self, period):
        super().__init__()
        self.period = period

    def forward(self, phase):
        unit = phase / self.period
        return 4 * (unit - 0.5).abs() - 1


class Bank(nn.Module):
    def __init__(self, freqs, gains, period):
        super().__init__()
        self.accumulate = PhaseAccumulator(freqs, period)
        self.shape = Shaper(period)
        self.register_buffer("gains", gains)

    def forward(self, ticks):
        phase = self.accumulate(ticks)
        wave = self.shape(phase)
        return phase, (wave * self.gains[:, None]).sum(dim=0)


def envelope(n, attack=0.2):
    t = torch.linspace(0, 1, n)
    return torch.where(t < attack, t / attack, torch.exp(-(t - attack)))


def crest(wave):
    return (wave.abs().max() / wave.pow(2).mean().sqrt()).item()


def spectrum_peak(wave):
    mag = torch.fft.rfft(wave).abs()
    return int(mag.argmax())


def parser():
    p = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=textwrap.dedent("""\
            offsets are in ticks; the bank must not drift however
            long the machine has been running
        """),
    )
    p.add_argument("--voices", type=int, default=3)
    p.add_argument("--ticks", type=int, default=32)
    p.add_argument("--offsets", type=float, nargs="*", default=[0.0, 1.0e7])
    p.add_argument("--period", type=float, default=0.3)
    return p


def main(argv=()):
    args = parser().parse_args(argv)
    ratio = torch.tensor([1.0 + 0.25 * i for i in range(args.voices)])
    gains = torch.tensor([math.pow(0.6, i) for i in range(args.voices)])
    bank = Bank(ratio * 1.7, gains, args.period)
    run = torch.compile(bank, backend="inductor")
    shape = envelope(args.ticks)
    for offset in args.offsets:
        ticks = offset + torch.arange(args.ticks, dtype=torch.float32)
        phase, wave = run(ticks)
        wave = wave * shape
        print(
            f"offset {offset:>12.1f}",
            f"phase {phase.min().item():.4f}..{phase.max().item():.4f}",
            f"crest {crest(wave):.3f}",
            f"peak {spectrum_peak(wave)}",
        )


if __name__ == "__main__":
    main()
