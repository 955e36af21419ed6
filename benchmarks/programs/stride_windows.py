# torch: 2.13.0
# Spectral-peak tracking over recordings of different lengths.  The frame
# positions of a recording are described by a python range(start, stop, hop).
import math
import torch

SAMPLE_RATE = 800
FRAME = 64


def frame_starts(n_samples, hop):
    usable = n_samples - FRAME + 1
    if usable <= 0:
        raise ValueError(f"recording too short: {n_samples}")
    return range(0, usable, hop)


def chirp(n, f0, f1):
    t = torch.arange(n) / SAMPLE_RATE
    sweep = f0 * t + 0.5 * (f1 - f0) * t * t / (n / SAMPLE_RATE)
    return torch.sin(2 * math.pi * sweep)


def pad_tail(wave, starts):
    """Drop the samples that no frame covers."""
    end = starts[-1] + FRAME
    return wave[:end]


class PeakTracker:
    def __init__(self):
        self.window = torch.hann_window(FRAME, periodic=False)
        self.bin_hz = SAMPLE_RATE / FRAME

    @torch.compile(backend="eager")
    def spectrum(self, wave, starts):
        covered = pad_tail(wave, starts)
        frames = covered.unfold(0, FRAME, starts.step)
        power = torch.fft.rfft(frames * self.window).abs().square()
        return power / power.sum(-1, keepdim=True)

    def track(self, wave, hop):
        starts = frame_starts(wave.numel(), hop)
        power = self.spectrum(wave, starts)
        if power.shape[0] != len(starts):
            raise AssertionError((power.shape, starts))
        return power.argmax(-1) * self.bin_hz


RECORDINGS = [
    # samples, hop, sweep from, sweep to
    (320, 32, 50.0, 50.0),
    (448, 32, 50.0, 200.0),
    (640, 32, 200.0, 50.0),
]


def direction(peaks):
    delta = (peaks[-1] - peaks[0]).item()
    if abs(delta) < 2 * SAMPLE_RATE / FRAME:
        return "steady"
    return "rising" if delta > 0 else "falling"


if __name__ == "__main__":
    tracker = PeakTracker()
    verdicts = []
    for n, hop, f0, f1 in RECORDINGS:
        peaks = tracker.track(chirp(n, f0, f1), hop)
        verdicts.append(direction(peaks))
        print(f"{n:4d} samples  {peaks.numel():2d} frames  {verdicts[-1]}")
    assert verdicts == ["steady", "rising", "falling"], verdicts
