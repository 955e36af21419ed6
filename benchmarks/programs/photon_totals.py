"""Detector read-out: photon counts come as int32 numpy frames."""
import numpy as np
import torch

FRAME = (4, 6)
EXPOSURE_MS = 3


class Calibration:
    """Linear detector model; gain is estimated from flat frames."""

    def __init__(self, dark, gain):
        self.dark = dark
        self.gain = gain

    @classmethod
    def from_flat(cls, frames):
        stack = np.stack(frames)
        dark = int(stack.min())
        gain = float(stack.mean() - dark) / 100.0
        return cls(dark, gain)

    def __repr__(self):
        return f"Calibration(dark={self.dark}, gain={self.gain:.3f})"


def rate(counts):
    """Counts per millisecond."""
    return counts / EXPOSURE_MS


def centroid(r):
    rows = r.sum(axis=1)
    idx = np.arange(rows.shape[0])
    return (rows * idx).sum() / rows.sum()


def process(counts):
    r = rate(counts)
    return r, centroid(r)


class Frames:
    def __init__(self, n, seed=0):
        self.n = n
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.n

    def __iter__(self):
        for _ in range(self.n):
            yield self.rng.integers(16_000_000, 40_000_000, size=FRAME, dtype=np.int32)


class Report:
    def __init__(self):
        self.rows = []

    def add(self, name, r):
        self.rows.append((name, str(r.dtype), float(np.asarray(r).sum())))

    def show(self):
        for name, dtype, total in self.rows:
            print(f"{name:<10} {dtype:<8} {total:.3f}")


def check(eager, compiled):
    assert eager.shape == compiled.shape
    if eager.dtype != compiled.dtype:
        raise AssertionError(f"dtype {eager.dtype} became {compiled.dtype}")
    np.testing.assert_allclose(eager, compiled, rtol=1e-12)


def main():
    frames = list(Frames(2))
    print(Calibration.from_flat(frames))
    fast = torch.compile(process, backend="eager")
    report = Report()
    results = []
    for k, frame in enumerate(frames):
        want, c0 = process(frame)
        got, c1 = fast(frame)
        report.add(f"eager{k}", want)
        report.add(f"comp{k}", got)
        results.append((want, got))
        assert abs(float(c0) - float(c1)) < 1e-3
    report.show()
    for want, got in results:
        check(want, got)


main()
