# torch: 2.8.0
"""Segment lesions in small scans with a two-level U-Net, in bfloat16, with a map of weights beside the masks.

Usage: lesion_amp.py [--steps N] [--size N] [--loss bce|dice|both]
"""
import argparse
import contextlib
import dataclasses
import logging
import math
import sys
import time
from pathlib import PurePosixPath
from typing import Any, Dict, List, Optional, Union

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

logger = logging.getLogger(PurePosixPath(__file__).stem)
Number = Union[int, float]


@dataclasses.dataclass(frozen=True)
class Options:
    steps: int = 2
    size: int = 8
    width: int = 4
    loss: str = "bce"
    rate: float = 1e-3
    dtype: torch.dtype = torch.bfloat16
    border: float = 2.0

    @staticmethod
    def from_command_line(argv: Optional[List[str]] = None) -> "Options":
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int, default=2)
        parser.add_argument("--size", type=int, default=8)
        parser.add_argument("--loss", choices=["bce", "dice", "both"], default="bce")
        given, _ = parser.parse_known_args(argv)
        return Options(**vars(given))


class Scans(IterableDataset):
    """Endless scans: a dark disc on noise, its mask, and weights that are larger at the disc's border."""

    def __init__(self, options: Options):
        self.options = options
        axis = torch.linspace(-1, 1, options.size)
        self.yy, self.xx = torch.meshgrid(axis, axis, indexing="ij")

    def disc(self, g: torch.Generator):
        cx, cy, r = (torch.rand(3, generator=g) * 0.5 + 0.2).tolist()
        return (self.xx - cx).square() + (self.yy - cy).square() - r * r

    def __iter__(self):
        info = get_worker_info()
        g = torch.Generator().manual_seed(info.id if info else 0)
        while True:
            d = self.disc(g)
            mask = (d < 0).float()
            scan = torch.randn(d.shape, generator=g) * 0.2 - mask
            weights = 1 + (self.options.border - 1) * torch.exp(-d.abs() * 8)
            yield {"scan": scan[None], "mask": mask[None], "weights": weights[None]}


def double(cin: int, cout: int) -> nn.Sequential:
    layers: List[nn.Module] = []
    for a, b in ((cin, cout), (cout, cout)):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(1, b), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.down1, self.down2 = double(1, width), double(width, 2 * width)
        self.middle = double(2 * width, 2 * width)
        self.up = nn.ModuleDict({"deep": double(4 * width, width), "shallow": double(2 * width, width)})
        self.out = nn.Conv2d(width, 1, 1)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.kaiming_normal_(p, a=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        m = self.middle(b)
        u = self.up["deep"](torch.cat((m, b), 1))
        u = F.interpolate(u, scale_factor=2, mode="nearest")
        return self.out(self.up["shallow"](torch.cat((u, a), 1)))


class Dice(nn.Module):
    def forward(self, logits, mask, weights):
        p = logits.sigmoid()
        inter, total = (p * mask * weights).sum(), ((p + mask) * weights).sum()
        return 1 - (2 * inter + 1) / (total + 1)


class WeightedBCE(nn.Module):
    def __init__(self, reduce: bool = True):
        super().__init__()
        self.reduce = reduce

    def forward(self, logits, mask, weights):
        each = F.binary_cross_entropy_with_logits(logits, mask, weight=weights, reduction="none")
        return each.mean() if self.reduce else each


class Both(nn.Module):
    def __init__(self, share: float = 0.5):
        super().__init__()
        self.share, self.bce, self.dice = share, WeightedBCE(), Dice()

    def forward(self, *batch):
        return self.share * self.bce(*batch) + (1 - self.share) * self.dice(*batch)


LOSSES: Dict[str, Any] = {"bce": WeightedBCE, "dice": Dice, "both": Both}


@contextlib.contextmanager
def timed(what: str):
    began = time.perf_counter()
    yield
    logger.info("%s took %.3f s", what, time.perf_counter() - began)


class Session:
    def __init__(self, options: Options):
        self.options = options
        self.model = UNet(options.width).to(options.dtype)
        self.criterion = torch.compile(LOSSES[options.loss](), backend="aot_eager_decomp_partition")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=options.rate, momentum=0.9, nesterov=True)
        self.history: List[Number] = []

    def step(self, batch: Dict[str, torch.Tensor]) -> torch.Tensor:
        scan, mask = (batch[key].to(self.options.dtype) for key in ("scan", "mask"))
        logits = self.model(scan)
        loss = self.criterion(logits, mask, batch["weights"])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self) -> bool:
        loader = DataLoader(Scans(self.options), batch_size=2)
        for number, batch in zip(range(self.options.steps), loader):
            with timed(f"step {number}"):
                loss = self.step(batch)
            if loss.dtype is not self.options.dtype:
                logger.warning("step %d: a loss of %s", number, loss.dtype)
            self.history.append(float(loss))
        return all(map(math.isfinite, self.history))


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    torch.manual_seed(3)
    session = Session(Options.from_command_line())
    sys.exit(not session.run())
