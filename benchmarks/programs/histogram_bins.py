# torch: 2.8.0
"""Bins durations into fixed-width buckets and builds per-channel histograms,
as a metrics exporter would do before shipping them."""
import argparse
import json
import logging
import operator
from dataclasses import dataclass
from functools import reduce
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger("hist")


@dataclass
class Channel:
    name: str
    width: float
    unit: str = "s"
    offset: float = 0.0

    def label(self, bucket: int) -> str:
        lo = self.offset + bucket * self.width
        return f"[{lo:.2f},{lo + self.width:.2f}){self.unit}"


CHANNELS = (
    Channel("decode", 0.1),
    Channel("render", 0.2),
    Channel("upload", 0.5, offset=0.0),
)


class Smoother(nn.Module):
    """Box filter on the bucket axis."""

    def __init__(self, taps: int = 3) -> None:
        super().__init__()
        self.taps = taps
        self.register_buffer("kernel", torch.full((1, 1, taps), 1.0 / taps))

    def forward(self, counts: torch.Tensor) -> torch.Tensor:
        pad = self.taps // 2
        return F.conv1d(counts[:, None].float(), self.kernel, padding=pad)[:, 0]


class BucketModel(nn.Module):
    def __init__(self, channels: Sequence[Channel], buckets: int) -> None:
        super().__init__()
        self.buckets = buckets
        self.register_buffer("width", torch.tensor([c.width for c in channels])[:, None])
        self.register_buffer("offset", torch.tensor([c.offset for c in channels])[:, None])

    def forward(self, durations: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        shifted = durations - self.offset
        bucket = shifted // self.width
        bucket = bucket.clamp(0, self.buckets - 1).long()
        excess = torch.relu(durations - self.offset - self.width * self.buckets)
        return bucket, excess


class Exporter:
    def __init__(self, channels: Sequence[Channel], model: Callable, smoother: Smoother) -> None:
        self.channels = list(channels)
        self.model = model
        self.smoother = smoother
        self.sinks: List[Callable[[Dict], None]] = []

    def sink(self, fn: Callable[[Dict], None]) -> Callable[[Dict], None]:
        self.sinks.append(fn)
        return fn

    def counts(self, durations: torch.Tensor, buckets: int) -> torch.Tensor:
        idx, excess = self.model(durations)
        if bool((excess > 0).any()):
            logger.warning("values above the last bucket: %s", excess.sum().item())
        onehot = F.one_hot(idx, buckets)
        return onehot.sum(1)

    def export(self, durations: torch.Tensor, buckets: int) -> Dict[str, List[int]]:
        counts = self.counts(durations, buckets)
        record = {c.name: row.tolist() for c, row in zip(self.channels, counts)}
        for fn in self.sinks:
            fn(record)
        return record

    def smooth_peak(self, counts: torch.Tensor) -> List[int]:
        return self.smoother(counts).argmax(1).tolist()


def measurements(repeat: int) -> torch.Tensor:
    """Timer ticks: multiples of a tenth of a second, as they come off the wire."""
    base = torch.tensor([0.1, 0.2, 0.5, 0.6, 1.0, 1.2])
    rows = [base.roll(i) for i in range(len(CHANNELS))]
    return torch.stack(rows).repeat(1, repeat)


def python_reference(durations: torch.Tensor, buckets: int) -> Dict[str, List[int]]:
    out: Dict[str, List[int]] = {}
    widths = torch.tensor([c.width for c in CHANNELS])
    for c, width, row in zip(CHANNELS, widths.tolist(), durations.tolist()):
        hist = [0] * buckets
        for value in row:
            hist[min(int((value - c.offset) // width), buckets - 1)] += 1
        out[c.name] = hist
    return out


def total(records: Iterable[Dict[str, List[int]]]) -> int:
    return reduce(operator.add, (sum(map(sum, r.values())) for r in records), 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--buckets", type=int, default=13)
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(BucketModel(CHANNELS, args.buckets))
    exporter = Exporter(CHANNELS, model, Smoother())
    records: List[Dict[str, List[int]]] = []
    exporter.sink(records.append)
    exporter.sink(lambda r: print(json.dumps(r, sort_keys=True)))
    durations = measurements(args.repeat)
    got = exporter.export(durations, args.buckets)
    counts = torch.tensor([got[c.name] for c in CHANNELS])
    for c, peak in zip(CHANNELS, exporter.smooth_peak(counts)):
        print(c.name, "busiest bucket", c.label(peak))
    print("total", total(records), "of", durations.numel())
    want = python_reference(durations, args.buckets)
    for name in want:
        if got[name] != want[name]:
            raise SystemExit(f"{name}: {got[name]} instead of {want[name]}")
    print("all histograms agree with the reference")


if __name__ == "__main__":
    main()
