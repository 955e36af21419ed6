"""Physical units on tensors (a subclass) and a compiled trajectory kernel."""
import math
from dataclasses import dataclass, field
from typing import List

import torch


class Meters(torch.Tensor):
    """A plain marker subclass: arithmetic keeps the type."""

    def kilometers(self):
        return self.as_subclass(torch.Tensor) / 1000.0


def meters(values):
    return torch.as_tensor(values, dtype=torch.float32).as_subclass(Meters)


@dataclass
class Shot:
    speed: float
    angle: float
    drag: float = 0.02

    @property
    def components(self):
        rad = math.radians(self.angle)
        return self.speed * math.cos(rad), self.speed * math.sin(rad)


@dataclass
class Log:
    rows: List[str] = field(default_factory=list)

    def add(self, shot, reach):
        self.rows.append(f"{shot.angle:5.1f} deg -> {reach:.3f} km")


def kernel(height, vy, dt, drag):
    vy = vy - 9.81 * dt
    vy = vy * (1.0 - drag * dt)
    height = height + vy * dt
    return height.clamp(min=0.0), vy


class Gun:
    def __init__(self, dt=0.1, backend="aot_eager"):
        self.dt = dt
        self.kernel = torch.compile(kernel, backend=backend, dynamic=False)

    def fly(self, shot, start, steps):
        vx, vy = shot.components
        height = start
        up = torch.full((len(start),), vy)
        distance = torch.zeros(len(start))
        for _ in range(steps):
            height, up = self.kernel(height, up, self.dt, shot.drag)
            distance = distance + (height > 0).float() * vx * self.dt
        return height, distance


def best_of(gun, shots, start, log):
    best = None
    for shot in shots:
        height, distance = gun.fly(shot, start, steps=12)
        top = height.max()
        reach = meters(distance.mean()).kilometers().item()
        log.add(shot, reach)
        if best is None or reach > best[1]:
            best = (shot, reach, top)
    return best


def main():
    log = Log()
    gun = Gun()
    shots = [Shot(40.0, a) for a in (15.0, 30.0, 45.0)]
    start = meters([0.0, 2.0, 10.0])
    shot, reach, top = best_of(gun, shots, start, log)
    print("\n".join(log.rows))
    print("best", shot.angle, round(reach, 4), type(top).__name__)
    return top


if __name__ == "__main__":
    assert isinstance(main(), Meters)
