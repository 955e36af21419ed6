# torch: 2.8.0
# 2D lidar: cast rays in a room, bin the hits in grid cells, build an occupancy map.
import argparse
import itertools
import math
from typing import Iterable, Iterator, NamedTuple, Tuple

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--rays", type=int, default=24)
parser.add_argument("--cell", type=float, default=0.5)
parser.add_argument("--max-range", type=float, default=6.0)
parser.add_argument("--size", type=int, default=16)
args = parser.parse_args([])


class Segment(NamedTuple):
    ax: float
    ay: float
    bx: float
    by: float

    @property
    def length(self):
        return math.hypot(self.bx - self.ax, self.by - self.ay)


class Pose(NamedTuple):
    x: float
    y: float
    heading: float

    def moved(self, step: float, turn: float) -> "Pose":
        h = self.heading + turn
        return Pose(self.x + step * math.cos(h), self.y + step * math.sin(h), h)


def polygon(points: Iterable[Tuple[float, float]], gap: int = -1) -> Iterator[Segment]:
    pts = list(points)
    for i, (p, q) in enumerate(zip(pts, itertools.chain(pts[1:], pts[:1]))):
        if i != gap:
            yield Segment(*p, *q)


WALLS = [
    *polygon([(0.5, 0.5), (7.5, 0.5), (7.5, 7.5), (0.5, 7.5)], gap=1),   # open door on the right
    *polygon([(2.0, 5.0), (3.0, 5.0), (3.0, 6.0), (2.0, 6.0)]),
]


def ray_lengths(pose: Pose, angles: torch.Tensor) -> torch.Tensor:
    """Distance to the nearest wall per ray; inf where nothing is hit."""
    walls = torch.tensor(WALLS)
    d = torch.stack([angles.cos(), angles.sin()], dim=-1)
    a = walls[:, :2] - torch.tensor([pose.x, pose.y])
    e = walls[:, 2:] - walls[:, :2]
    det = d[:, None, 0] * e[None, :, 1] - d[:, None, 1] * e[None, :, 0]
    safe = torch.where(det.abs() < 1e-6, torch.full_like(det, 1e-6), det)
    t = (a[None, :, 0] * e[None, :, 1] - a[None, :, 1] * e[None, :, 0]) / safe
    s = (a[None, :, 0] * d[:, None, 1] - a[None, :, 1] * d[:, None, 0]) / safe
    hit = (t > 1e-4) & (s >= 0) & (s <= 1)
    return torch.where(hit, t, torch.full_like(t, math.inf)).amin(dim=1)


@torch.compile(backend="inductor")
def range_bins(dist, cell):
    """Index of the range bin of each ray and the offset inside the bin."""
    bins = dist // cell
    return bins, torch.exp(-dist)


class OccupancyGrid:
    def __init__(self, size, cell):
        self.cell = cell
        self.hits = np.zeros((size, size), dtype=np.int32)
        self.invalid = 0
        self.far = 0

    def insert(self, pose: Pose, angles, bins):
        for ang, b in zip(angles.tolist(), bins.tolist()):
            if math.isnan(b):
                self.invalid += 1
                continue
            if b * self.cell > args.max_range:
                self.far += 1
                continue
            r = (b + 0.5) * self.cell
            col = int((pose.x + r * math.cos(ang)) / self.cell)
            row = int((pose.y + r * math.sin(ang)) / self.cell)
            if 0 <= row < self.hits.shape[0] and 0 <= col < self.hits.shape[1]:
                self.hits[row, col] += 1

    def __str__(self):
        marks = np.array(list(" .+#"))
        return "\n".join("".join(marks[np.minimum(row, 3)]) for row in self.hits)

    def entropy(self):
        p = self.hits[self.hits > 0] / self.hits.sum()
        return float(-(p * np.log2(p)).sum())


grid = OccupancyGrid(args.size, args.cell)
pose = Pose(4.0, 3.0, 0.1)
travelled, brightness = 0.0, []
for step, turn in zip((0.0, 0.6, 0.6, 0.4), itertools.cycle((0.0, 0.3, -0.2))):
    pose = pose.moved(step, turn)
    travelled += step
    angles = pose.heading + torch.arange(args.rays) * (2 * math.pi / args.rays)
    dist = ray_lengths(pose, angles)
    bins, glow = range_bins(dist, args.cell)
    brightness.append(glow.mean().item())
    grid.insert(pose, angles, bins)

print(grid)
print("wall length", round(sum(w.length for w in WALLS), 2), "travelled", travelled)
print(f"cells {np.count_nonzero(grid.hits)} entropy {grid.entropy():.3f} glow {np.mean(brightness):.4f}")
print(f"rays without echo {grid.invalid}, beyond range {grid.far}")
