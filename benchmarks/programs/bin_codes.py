# torch: 2.13.0
"""
Sensor codes -> bins -> histogram features -> logistic regression (numbers in, alarm out).

The readings come with one decimal, the bins are a tenth wide.  Bin index is `value // width`
like in the C firmware (same rounding as python's `//`, we have checked that).
"""
import csv
import io
import math
import statistics
from collections import OrderedDict
from typing import Dict, Iterable, List, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH = 0.1
NBINS = 16
DEVICE = torch.device("cpu")
FLOAT = torch.float32


def simulate_csv(rows: int, cols: int) -> str:
    """What the logger writes: one decimal per reading."""
    buf = io.StringIO()
    writer = csv.writer(buf)
    writer.writerow([f"ch{i}" for i in range(cols)] + ["alarm"])
    readings = torch.randn(rows, cols).abs().clamp(0.0, 1.5)
    for i, row in enumerate(readings.tolist()):
        alarm = int(statistics.fmean(row) > 0.7)
        writer.writerow([f"{v:.1f}" for v in row] + [alarm])
    return buf.getvalue()


def read_csv(text: str) -> Tuple[torch.Tensor, torch.Tensor]:
    reader = csv.DictReader(io.StringIO(text))
    xs: List[List[float]] = []
    ys: List[float] = []
    for rec in reader:
        ys.append(float(rec.pop("alarm")))
        xs.append([float(v) for v in rec.values()])
    return torch.tensor(xs, dtype=FLOAT, device=DEVICE), torch.tensor(ys, dtype=FLOAT, device=DEVICE)


class Binner(nn.Module):
    """readings -> bin numbers"""

    def __init__(self, width: float = WIDTH, nbins: int = NBINS) -> None:
        super().__init__()
        self.width = width
        self.nbins = nbins

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = x // self.width
        return code.clamp(0, self.nbins - 1).to(torch.int64)


class SoftHistogram(nn.Module):
    """Counts per bin, smoothed with a learned three tap kernel."""

    def __init__(self, nbins: int) -> None:
        super().__init__()
        self.nbins = nbins
        self.kernel = nn.Parameter(torch.tensor([0.2, 0.6, 0.2]))

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        counts = F.one_hot(codes, self.nbins).to(FLOAT).mean(1)
        k = torch.softmax(self.kernel, 0).view(1, 1, 3)
        return F.conv1d(counts.unsqueeze(1), k, padding=1).squeeze(1)


class Scaler:
    """Per-feature standardisation, fitted once"""

    def __init__(self) -> None:
        self.fitted = False

    def fit(self, x: torch.Tensor) -> "Scaler":
        self.mean = x.mean(0)
        self.std = x.std(0).clamp_min(1e-3)
        self.fitted = True
        return self

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        assert self.fitted
        return (x - self.mean) / self.std


class Alarm(nn.Module):
    def __init__(self, nbins: int = NBINS) -> None:
        super().__init__()
        self.features = SoftHistogram(nbins)
        self.net = nn.Sequential(
            OrderedDict(
                hidden=nn.Linear(nbins, 8),
                act=nn.Mish(),
                out=nn.Linear(8, 1),
            )
        )

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return self.net(self.features(codes)).squeeze(-1)


binner = torch.compile(Binner())


def entropy(codes: torch.Tensor) -> float:
    p = torch.bincount(codes.flatten(), minlength=NBINS).float()
    p = p / p.sum()
    return float(-(p * (p + 1e-12).log2()).sum())


def occupancy(codes: torch.Tensor) -> str:
    counts = torch.bincount(codes.flatten(), minlength=NBINS).tolist()
    top = max(counts)
    return "".join(" .:-=+*#%@"[min(9, math.ceil(9 * c / top))] for c in counts)


def progress(it: Iterable, total: int):
    """tqdm isn't on the box"""
    for i, item in enumerate(it):
        yield item
        if (i + 1) % max(1, total // 2) == 0:
            print(f"  {100 * (i + 1) // total:3d}%")


def fit(codes: torch.Tensor, y: torch.Tensor, epochs: int = 4) -> Dict[str, float]:
    model = Alarm()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
    loss = torch.zeros(())
    for _ in progress(range(epochs), epochs):
        loss = F.binary_cross_entropy_with_logits(model(codes), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    with torch.no_grad():
        acc = ((model(codes) > 0) == (y > 0.5)).float().mean()
    return {"loss": loss.item(), "acc": acc.item()}


def main() -> None:
    x, y = read_csv(simulate_csv(rows=8, cols=6))
    # reference readings, go with every shipment
    gauge = torch.tensor([[0.1, 0.2, 0.5, 0.9, 1.0, 1.4]], dtype=FLOAT)
    codes = binner(torch.cat([gauge, x]))
    print("gauge bins:", codes[0].tolist())
    codes = codes[1:]
    print(f"entropy {entropy(codes):.3f} bits  |{occupancy(codes)}|")
    level = Scaler().fit(x)(x).mean()
    metrics = fit(codes, y)
    metrics["level"] = float(level)
    print(" ".join(f"{k}={v:.3f}" for k, v in metrics.items()))


if __name__ == "__main__":
    main()
