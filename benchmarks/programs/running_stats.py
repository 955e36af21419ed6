# torch: 2.13.0
import contextlib
import math

import torch


class SensorStream:
    def __init__(self, channels, length, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.channels = channels
        self.length = length

    def __iter__(self):
        for _ in range(self.length):
            noise = torch.rand(16, self.channels, generator=self.generator)
            yield noise * 4.0 - 1.0


class Normaliser:
    def __init__(self, channels):
        self.shift = torch.zeros(channels)
        self.scale = torch.full((channels,), 0.5)

    def __call__(self, batch):
        return (batch - self.shift) * self.scale


class Accumulator:
    def __init__(self):
        self.total = torch.zeros((), dtype=torch.float64)
        self.squares = torch.zeros((), dtype=torch.float64)
        self.scratch = torch.zeros((), dtype=torch.float64)
        self.count = torch.zeros((), dtype=torch.int64)

    def collect(self, batch):
        torch.sum(batch, (0, 1), out=self.scratch)
        self.total += self.scratch
        self.squares += (batch * batch).double().sum()
        self.count += batch.numel()

    def moments(self):
        n = self.count.item()
        mean = self.total / n
        variance = self.squares / n - mean**2
        return mean.item(), variance.item()


class Pipeline:
    def __init__(self, channels, backend="aot_eager"):
        self.normalise = Normaliser(channels)
        self.stats = Accumulator()
        self.update = torch.compile(self._update, backend=backend)
        self.log = []

    def _update(self, batch):
        batch = self.normalise(batch)
        self.stats.collect(batch)
        return batch.amax(0)

    @contextlib.contextmanager
    def epoch(self, name):
        before = self.stats.count.item()
        yield self
        self.log.append((name, self.stats.count.item() - before))

    def consume(self, stream):
        top = None
        for batch in stream:
            peak = self.update(batch)
            top = peak if top is None else torch.maximum(top, peak)
        return top


class Exact:
    def __init__(self, scale):
        self.scale = scale
        self.values = []

    def consume(self, stream):
        for batch in stream:
            self.values.extend(v * self.scale for v in batch.flatten().tolist())

    def mean(self):
        return math.fsum(self.values) / len(self.values)

    def variance(self):
        centre = self.mean()
        return math.fsum((v - centre) ** 2 for v in self.values) / len(self.values)


def main():
    channels = 3
    pipeline = Pipeline(channels)
    exact = Exact(0.5)
    with torch.no_grad():
        for seed in (11, 12):
            with pipeline.epoch(f"seed{seed}") as active:
                top = active.consume(SensorStream(channels, 5, seed))
            assert top.shape == (channels,) and top.max() <= 1.5
            exact.consume(SensorStream(channels, 5, seed))

    assert pipeline.log == [("seed11", 240), ("seed12", 240)]
    mean, variance = pipeline.stats.moments()
    assert math.isfinite(variance) and variance > 0
    for name, got, want in (
        ("mean", mean, exact.mean()),
        ("variance", variance, exact.variance()),
    ):
        assert math.isclose(got, want, rel_tol=1e-3), f"{name}: {got} instead of {want}"
    print("mean", mean, "variance", variance)


if __name__ == "__main__":
    main()
