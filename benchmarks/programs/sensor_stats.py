# torch: 2.8.0
"""Integer ADC readings are turned into calibrated statistics.  The numeric core
is plain numpy and gets compiled; a small torch model consumes its output."""
import argparse
import dataclasses
import logging
import operator
import random
from typing import Any, Callable, Dict, Iterator, List, Protocol, Tuple

import numpy as np
import torch
import torch.nn as nn

logger = logging.getLogger("adc")


@dataclasses.dataclass(frozen=True)
class Calibration:
    divisor: int
    zero: int
    unit: str

    def describe(self) -> str:
        return f"1/{self.divisor} {self.unit} per count, zero at {self.zero}"


@dataclasses.dataclass
class Batch:
    sensor: str
    counts: np.ndarray

    def __post_init__(self) -> None:
        if self.counts.dtype.kind != "i":
            raise TypeError("raw counts must be integers")

    def __len__(self) -> int:
        return len(self.counts)


CALIBRATIONS: Dict[str, Calibration] = {
    "pressure": Calibration(3, 12, "kPa"),
    "strain": Calibration(7, -5, "um/m"),
}


class Source(Protocol):
    def __call__(self, sensor: str, samples: int) -> np.ndarray: ...


class SimulatedAdc:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def __call__(self, sensor: str, samples: int) -> np.ndarray:
        base = 100_000_000 if sensor == "pressure" else 90_000_000
        return np.array([base + self.rng.randrange(0, 50) for _ in range(samples)])


def calibrate(counts: np.ndarray, divisor: int, zero: int) -> np.ndarray:
    """Physical values: shift, then scale.  Counts are large, the interesting
    part is in the last digits."""
    shifted = counts - zero
    return shifted / divisor


class Welford:
    """Streaming mean and variance, in the precision of what it is fed."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Any = None
        self.m2: Any = None

    def update(self, values: np.ndarray) -> None:
        for v in values:
            self.count += 1
            if self.mean is None:
                self.mean = v
                self.m2 = v - v
                continue
            delta = v - self.mean
            self.mean = self.mean + delta / values.dtype.type(self.count)
            self.m2 = self.m2 + delta * (v - self.mean)

    @property
    def variance(self) -> float:
        return float(self.m2) / max(self.count - 1, 1)


class Detector(nn.Module):
    """Scores the deviation of a window from its own mean."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.weight = nn.Parameter(torch.linspace(1.0, 0.5, window, dtype=torch.float64))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        windows = values.view(-1, self.window).double()
        centred = windows - windows.mean(dim=1, keepdim=True)
        return (centred.abs() * self.weight).sum(dim=1)


class Monitor:
    def __init__(self, source: Source, backend: str, window: int = 4) -> None:
        self.source = source
        self.convert: Callable = torch.compile(calibrate, backend=backend)
        self.detector = Detector(window)
        self.stats: Dict[str, Welford] = {}
        self.alarms: List[Tuple[str, int]] = []

    def batches(self, samples: int) -> Iterator[Batch]:
        for sensor in sorted(CALIBRATIONS):
            yield Batch(sensor, self.source(sensor, samples))

    @torch.no_grad()
    def process(self, batch: Batch, threshold: float) -> List[float]:
        cal = CALIBRATIONS[batch.sensor]
        values = self.convert(batch.counts, cal.divisor, cal.zero)
        self.stats.setdefault(batch.sensor, Welford()).update(values)
        scores = self.detector(torch.from_numpy(values)).tolist()
        for i, score in enumerate(scores):
            if score > threshold:
                self.alarms.append((batch.sensor, i))
        logger.debug("%s %s", batch.sensor, values.dtype)
        return scores


def exact_variance(counts: np.ndarray, cal: Calibration) -> float:
    total = [int(c) for c in counts]
    mean = sum(total) / len(total)
    return sum((c - mean) ** 2 for c in total) / (len(total) - 1) / cal.divisor**2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--threshold", type=float, default=12.0)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()
    torch.manual_seed(0)
    monitor = Monitor(SimulatedAdc(seed=9), args.backend)
    worst = 0.0
    for batch in monitor.batches(args.samples):
        cal = CALIBRATIONS[batch.sensor]
        scores = monitor.process(batch, args.threshold)
        variance = monitor.stats[batch.sensor].variance
        expected = exact_variance(batch.counts, cal)
        worst = max(worst, abs(variance - expected) / expected)
        print(f"{batch.sensor}: {cal.describe()}")
        print("  scores", [round(s, 3) for s in scores], f"variance {variance:.4f}")
    for sensor, index in sorted(monitor.alarms, key=operator.itemgetter(1, 0)):
        print("alarm", sensor, "window", index)
    if worst > 1e-5:
        raise ArithmeticError(f"variance is off by {worst:.2%}")


if __name__ == "__main__":
    main()
