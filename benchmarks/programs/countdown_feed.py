# torch: 2.13.0
"""Progressive-resolution smoothing: a schedule object yields kernel widths that
shrink towards 1; each width is one smoothing pass, coarse to fine."""
import math
import torch
import torch.nn.functional as F


class HalvingSchedule:
    """Iterator over odd kernel widths: start, ~start/2, ... down to `floor`."""

    def __init__(self, start, floor=3):
        if start % 2 == 0:
            raise ValueError("kernel widths must be odd")
        self.start = start
        self.floor = floor
        self.width = start

    def rewind(self):
        self.width = self.start
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if self.width < self.floor:
            raise StopIteration
        width = self.width
        half = self.width // 2
        self.width = half if half % 2 else half - 1
        return width


def box(width):
    return torch.full((1, 1, width), 1.0 / width)


def smooth(signal, width):
    padded = F.pad(signal, (width // 2, width // 2), mode="replicate")
    return F.conv1d(padded, box(width))


class MultiScale:
    def __init__(self, schedule):
        self.schedule = schedule
        self.weights = None

    def plan(self):
        return list(self.schedule.rewind())

    def __call__(self, signal):
        widths = self.plan()
        residual = signal
        bands = []
        for width in widths:
            low = smooth(residual, width)
            bands.append(low)
            residual = residual - low
        bands.append(residual)
        return torch.cat(bands, dim=1)


def synth(n):
    t = torch.arange(n, dtype=torch.float32) / n
    slow = torch.sin(2 * math.pi * t)
    fast = 0.3 * torch.sin(2 * math.pi * 21 * t)
    return (slow + fast).view(1, 1, n)


def energy(bands):
    return bands.pow(2).mean(dim=-1).squeeze(0)


def main():
    torch.manual_seed(0)
    decompose = MultiScale(HalvingSchedule(start=15))

    @torch.compile(backend="eager")
    def analyse(x):
        return decompose(x)

    signal = synth(128)
    for sigma in (0.0, 0.1):
        noisy = signal + sigma * torch.randn_like(signal)
        bands = analyse(noisy)
        assert bands.shape[1] == 4, bands.shape  # widths 15, 7, 3 + residual
        torch.testing.assert_close(bands.sum(1, keepdim=True), noisy)
        print(sigma, [round(v, 4) for v in energy(bands).tolist()])


if __name__ == "__main__":
    main()
