# torch: 2.13.0
"""Audio onset features: envelope following, decimation and level histograms."""
import math
import sys

import torch

RATE = 800
HOP = 40
LEVEL_STEP = 0.1
N_LEVELS = 12


def tone(freq, seconds, amp=1.0):
    t = torch.arange(int(RATE * seconds)) / RATE
    return amp * torch.sin(2 * math.pi * freq * t)


def bursts():
    """Yields pieces of signal with known peaks between silences."""
    for k, amp in enumerate([0.3, 0.5, 0.8, 1.0, 0.6]):
        piece = tone(40 + 10 * k, 0.2, amp)
        piece = piece / piece.abs().max() * amp
        yield torch.cat([piece, torch.zeros(HOP)])


def frame(signal, hop=HOP):
    usable = signal.numel() // hop * hop
    return signal[:usable].view(-1, hop)


def peak_envelope(frames):
    return frames.abs().amax(dim=1)


def smooth(env, keep=0.0):
    if keep == 0.0:
        return env
    out = []
    prev = env[0]
    for v in env.unbind():
        prev = keep * prev + (1 - keep) * v
        out.append(prev)
    return torch.stack(out)


def normalise(env):
    return env / env.max()


def quantise(env, step=LEVEL_STEP):
    return (env // step).clamp(0, N_LEVELS - 1)


def histogram(levels):
    grid = torch.arange(N_LEVELS, dtype=levels.dtype)
    hits = levels[:, None] == grid[None, :]
    return hits.sum(0)


def onset_strength(env):
    rise = env[1:] - env[:-1]
    return torch.relu(rise)


def crest(frames):
    rms = frames.square().mean(1).sqrt()
    return frames.abs().amax(1) / (rms + 1e-6)


def analyse(signal):
    frames = frame(signal)
    env = normalise(smooth(peak_envelope(frames)))
    levels = quantise(env)
    return {
        "levels": levels,
        "histogram": histogram(levels),
        "onsets": onset_strength(env),
        "crest": crest(frames).mean(),
    }


def draw(hist, out=sys.stdout):
    for level, count in enumerate(hist.tolist()):
        if count:
            out.write(f"{level * LEVEL_STEP:4.1f} {'#' * count}\n")


def compare(a, b):
    bad = []
    for key in a:
        if not torch.allclose(a[key].float(), b[key].float(), atol=1e-4):
            bad.append(key)
    return bad


def main():
    signal = torch.cat(list(bursts()))
    want = analyse(signal)
    print("eager")
    draw(want["histogram"])
    got = torch.compile(analyse, backend="inductor")(signal)
    print("compiled")
    draw(got["histogram"])
    bad = compare(want, got)
    if bad:
        raise SystemExit(f"features differ: {', '.join(bad)}")


if __name__ == "__main__":
    main()
