# torch: 2.8.0
"""Heating simulator: a boiler with a limited valve and a PI controller."""
import argparse
import random

import torch


class Bounded:
    """Common part of things with limits."""

    low, high = 0.0, 1.0

    def limit(self, v):
        return min(self.high, max(self.low, v))


class Valve(Bounded):
    def __init__(self, opening=0.5):
        self._opening = opening

    @property
    def opening(self):
        return self._opening

    @opening.setter
    def opening(self, value):
        self._opening = self.limit(value)


class Room:
    def __init__(self, name, temps, loss):
        self.name = name
        self.temps = temps
        self.loss = loss

    def cool(self, outside):
        self.temps = self.temps + (outside - self.temps) * self.loss


class Boiler:
    def __init__(self, power, valve):
        self.power = power
        self.valve = valve

    def heat(self, temps):
        return temps + self.power * self.valve.opening


class Schedule:
    def __init__(self, steps, wide):
        self.steps = steps
        self.wide = wide

    def __iter__(self):
        for i in range(self.steps):
            yield i, 0.25 if i % 3 else self.wide


class Plant:
    def __init__(self, room, boiler):
        self.room = room
        self.boiler = boiler
        self.step = torch.compile(self._step, backend="eager")
        self.openings = []

    def _step(self, temps, demand):
        valve = self.boiler.valve
        valve.opening = demand
        warmed = self.boiler.heat(temps)
        return warmed

    def run(self, schedule, outside):
        for _, demand in schedule:
            self.room.temps = self.step(self.room.temps, demand)
            self.room.cool(outside)
            self.openings.append(self.boiler.valve.opening)
        return self.room.temps


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=7)
    p.add_argument("--power", type=float, default=4.0)
    p.add_argument("--outside", type=float, default=5.0)
    p.add_argument("--wide", type=float, default=3.0)
    return p.parse_args()


def initial(seed, cells):
    rng = random.Random(seed)
    return torch.tensor([rng.uniform(14, 18) for _ in range(cells)])


def main():
    args = parse_args()
    room = Room("hall", initial(4, 5), loss=0.1)
    plant = Plant(room, Boiler(args.power, Valve()))
    temps = plant.run(Schedule(args.steps, args.wide), args.outside)
    print([round(t, 2) for t in temps.tolist()], plant.openings)
    expected = initial(4, 5)
    for opening in plant.openings:
        expected = expected + args.power * opening
        expected = expected + (args.outside - expected) * room.loss
    assert max(plant.openings) <= Valve.high, plant.openings
    gap = (temps - expected).abs().max().item()
    assert gap < 1e-3, f"heat balance is off by {gap:.3f} K"


if __name__ == "__main__":
    main()
