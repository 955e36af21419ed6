# torch: 2.13.0
"""Planar boat tracker: dead reckoning with a signed leeway term."""
import argparse
import math
from dataclasses import dataclass, field

import torch


@dataclass
class Leg:
    speed: float
    rudder: float
    leeway: float
    seconds: int = 4


@dataclass
class Track:
    positions: list = field(default_factory=list)
    headings: list = field(default_factory=list)

    def add(self, pos, heading):
        self.positions.append(pos.clone())
        self.headings.append(heading.clone())

    def __len__(self):
        return len(self.positions)


def rotate(vec, angle):
    c, s = torch.cos(angle), torch.sin(angle)
    return torch.stack([vec[0] * c - vec[1] * s, vec[0] * s + vec[1] * c])


def drift(current, leeway):
    return current.abs() * leeway


def bearing(forward, lateral):
    return torch.atan2(lateral, forward)


class Hull:
    def __init__(self, length):
        self.length = length
        self.gain = 1.0 / length

    def turn(self, heading, rudder, dt):
        return heading + rudder * self.gain * dt

    def wake_bearing(self, current, leeway):
        lateral = drift(current, leeway)
        astern = -torch.ones_like(lateral)
        return bearing(astern, lateral)


class Simulator:
    def __init__(self, hull, current, dt=1.0):
        self.hull = hull
        self.current = current
        self.dt = dt
        self.track = Track()
        self.wake = torch.compile(self._wake, backend="aot_eager")

    def _wake(self, current, leeway):
        return self.hull.wake_bearing(current, leeway)

    def run(self, legs):
        pos = torch.zeros(2)
        heading = torch.zeros(())
        sides = []
        for leg in legs:
            for _ in range(leg.seconds):
                heading = self.hull.turn(heading, leg.rudder, self.dt)
                step = rotate(torch.tensor([leg.speed, 0.0]), heading)
                pos = pos + step * self.dt
                self.track.add(pos, heading)
            sides.append(self.wake(self.current, leg.leeway))
        return torch.stack(sides)


def side_of(bearings):
    names = []
    for row in bearings:
        if (row > 0).all():
            names.append("port")
        elif (row < 0).all():
            names.append("starboard")
        else:
            names.append("mixed")
    return names


def summarize(track):
    total = torch.zeros(())
    for a, b in zip(track.positions, track.positions[1:]):
        total = total + torch.linalg.vector_norm(b - a)
    return float(total)


def build_parser():
    p = argparse.ArgumentParser()
    p.add_argument("--length", type=float, default=6.0)
    p.add_argument("--speed", type=float, default=2.5)
    p.add_argument("--seed", type=int, default=3)
    return p


def main():
    args = build_parser().parse_args()
    torch.manual_seed(args.seed)
    current = torch.rand(3) + 0.5
    legs = [
        Leg(args.speed, 0.1, 0.0),
        Leg(args.speed, -0.1, -0.0),
        Leg(args.speed, 0.2, 0.0, seconds=2),
    ]
    sim = Simulator(Hull(args.length), current)
    wake = sim.run(legs)
    assert len(sim.track) == 10
    dist = summarize(sim.track)
    assert math.isclose(dist, args.speed * 9, rel_tol=1e-3), dist
    sides = side_of(wake)
    print(sides, wake.tolist())
    expected = ["port" if math.copysign(1, leg.leeway) > 0 else "starboard" for leg in legs]
    if sides != expected:
        raise RuntimeError(f"wake on the wrong side: {sides} instead of {expected}")


if __name__ == "__main__":
    main()
