# torch: 2.13.0
"""Checkpoint-able simulation state with validated (descriptor) fields, in the manner of small ORMs."""
import logging
import sys

import torch

logger = logging.getLogger("spring")


class Field:
    def __init__(self, lo=None, hi=None):
        self.lo, self.hi = lo, hi

    def __set_name__(self, owner, name):
        self.slot = "_" + name

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return getattr(obj, self.slot)

    def __set__(self, obj, value):
        if self.lo is not None and value < self.lo:
            value = self.lo
        if self.hi is not None and value > self.hi:
            value = self.hi
        setattr(obj, self.slot, value)


class Record:
    def dump(self):
        return vars(self)


class SpringState(Record):
    stiffness = Field(0.1, 10.0)
    damping = Field(0.0, 1.0)
    dt = Field(1e-3, 0.1)

    def __init__(self, stiffness, damping, dt):
        self.stiffness = stiffness
        self.damping = damping
        self.dt = dt


class Simulator:
    def __init__(self, n):
        self.pos = torch.linspace(-1.0, 1.0, n)
        self.vel = torch.zeros(n)
        self.snapshots = []

    @staticmethod
    def step(pos, vel, knobs):
        state = SpringState(*knobs)
        acc = -state.stiffness * pos - state.damping * vel
        vel = vel + acc * state.dt
        return pos + vel * state.dt, vel, state.dump()

    def run(self, steps, knobs):
        step = torch.compile(self.step, backend="eager")
        for i in range(steps):
            self.pos, self.vel, snap = step(self.pos, self.vel, knobs)
            if i % 2 == 0:
                self.snapshots.append(snap)
            logger.info("step %d energy %.4f", i, self.energy())
        return self

    def energy(self):
        return float(self.pos.square().sum() + self.vel.square().sum())


def summarize(sim):
    yield f"energy {sim.energy():.4f}"
    for i, snap in enumerate(sim.snapshots):
        row = " ".join(f"{k.lstrip('_')}={v:g}" for k, v in sorted(snap.items()))
        yield f"snapshot {i}: {row}"


def main(argv):
    steps = int(argv[1]) if len(argv) > 1 else 5
    sim = Simulator(6).run(steps, (20.0, 0.3, 0.05))
    for line in summarize(sim):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
