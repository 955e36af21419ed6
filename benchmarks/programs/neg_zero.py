# torch: 2.8.0
"""Complex square roots along branch cuts: conformal map of a polyline to the half plane."""
import cmath
import math
import sys
from typing import List, NamedTuple, Sequence

import torch


class Pt(NamedTuple):
    x: float
    y: float

    def __sub__(self, other):
        return Pt(self.x - other.x, self.y - other.y)

    def norm(self):
        return math.hypot(self.x, self.y)


class Side(NamedTuple):
    name: str
    eps: float          # signed offset of the cut: +0.0 upper lip, -0.0 lower lip


UPPER = Side("upper", 0.0)
LOWER = Side("lower", -0.0)


def linspace(a: float, b: float, n: int) -> List[float]:
    return [a + (b - a) * i / (n - 1) for i in range(n)]


def keyhole(radius: float, n: int) -> List[Pt]:
    """Keyhole contour around the cut on the negative real axis."""
    ring = [cmath.rect(radius, t) for t in linspace(-math.pi * 0.97, math.pi * 0.97, n)]
    return [Pt(z.real, z.imag) for z in ring]


class BranchMap:
    def __init__(self, power: float, shift: float = 0.0):
        self.power = power
        self.shift = shift
        self.calls = 0

    @torch.compile(backend="eager")
    def on_cut(self, r: torch.Tensor, eps: float):
        """Values of (shift + z)**power for z = -r, seen from one lip of the cut."""
        angle = math.atan2(eps, -1.0)
        mag = (r + self.shift).pow(self.power)
        return mag * math.cos(self.power * angle), mag * math.sin(self.power * angle)

    def off_cut(self, xy: torch.Tensor):
        self.calls += 1
        x, y = xy.unbind(-1)
        mag = (x * x + y * y).sqrt().pow(self.power)
        ang = torch.atan2(y, x) * self.power
        return torch.stack([mag * ang.cos(), mag * ang.sin()], dim=-1)


def polyline_length(pts: torch.Tensor) -> float:
    return pts.diff(dim=0).norm(dim=1).sum().item()


def signed_area(pts: torch.Tensor) -> float:
    nxt = pts.roll(-1, dims=0)
    return 0.5 * (pts[:, 0] * nxt[:, 1] - pts[:, 1] * nxt[:, 0]).sum().item()


def bounding_box(pts: torch.Tensor):
    lo, hi = pts.amin(0), pts.amax(0)
    return tuple(round(v, 3) + 0.0 for v in (*lo.tolist(), *hi.tolist()))


class Contour:
    def __init__(self, pieces: Sequence[torch.Tensor]):
        self.pieces = list(pieces)

    def __add__(self, piece):
        return Contour(self.pieces + [piece])

    def __len__(self):
        return sum(len(p) for p in self.pieces)

    @property
    def points(self):
        return torch.cat(self.pieces)

    def reversed(self):
        return Contour([p.flip(0) for p in reversed(self.pieces)])

    def describe(self, label):
        pts = self.points
        return (f"{label}: {len(self)} points, length {polyline_length(pts):.3f}, "
                f"area {signed_area(pts):+.3f}, box {bounding_box(pts)}")


def trace(branch: BranchMap, radii: torch.Tensor, side: Side) -> torch.Tensor:
    re, im = branch.on_cut(radii, side.eps)
    return torch.stack([re, im], dim=-1)


def main() -> int:
    ring = keyhole(2.0, 33)
    gaps = [(b - a).norm() for a, b in zip(ring, ring[1:])]
    print(f"ring spacing {min(gaps):.4f}..{max(gaps):.4f}")

    branch = BranchMap(power=0.5)
    radii = torch.linspace(2.0, 0.05, 14)
    image = branch.off_cut(torch.tensor(ring))

    outline = Contour([image])
    for side, radius_order in ((UPPER, radii), (LOWER, radii.flip(0))):
        piece = trace(branch, radius_order, side)
        print(f"{side.name:>6} lip: im from {piece[0, 1]:+.3f} to {piece[-1, 1]:+.3f}")
        outline = outline + piece

    print(outline.describe("image"))
    print(outline.reversed().describe("reversed"))

    expected = signed_area(image)
    filled = signed_area(outline.points)
    print("relative area change", round((filled - expected) / expected, 4))
    return 0


if __name__ == "__main__":
    sys.exit(main())
