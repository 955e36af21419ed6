# torch: 2.8.0
"""Adaptive explicit integrator with a table of step refinements.

Each refinement level divides the base interval by a weight taken from a
published scheme; schemes with no sub steps are legal and mean "reuse".
"""
from collections import namedtuple
from functools import partial

import torch

Scheme = namedtuple("Scheme", ["label", "stages", "substeps"])

SCHEMES = (
    Scheme("coarse", (1.0,), 2),
    Scheme("medium", (0.5, 0.5), 4),
    Scheme("frozen", (0.0,), 0),
    Scheme("fine", (1 / 6, 2 / 3, 1 / 6), 8),
)
BUDGET = 32


def lotka_volterra(state, a=1.1, b=0.4, c=0.4, d=0.1):
    prey, pred = state[..., 0], state[..., 1]
    return torch.stack([a * prey - b * prey * pred, d * prey * pred - c * pred], dim=-1)


def damped(state, k=0.3):
    return -k * state


def euler(rhs, state, h):
    return state + h * rhs(state)


def heun(rhs, state, h):
    k1 = rhs(state)
    k2 = rhs(state + h * k1)
    return state + 0.5 * h * (k1 + k2)


STEPPERS = {"euler": euler, "heun": heun}


class Planner:
    def __init__(self, budget):
        self.budget = budget
        self.decisions = []

    def repeats(self, scheme):
        try:
            n = self.budget // scheme.substeps
        except ZeroDivisionError:
            self.decisions.append((scheme.label, "reuse"))
            return 0
        else:
            self.decisions.append((scheme.label, n))
            return n


class Trajectory:
    def __init__(self):
        self.points = []

    def push(self, label, state):
        self.points.append((label, state))

    def summary(self):
        for label, state in self.points:
            prey, pred = state.mean(dim=0).tolist()
            yield f"{label:>8}: prey={prey:.4f} pred={pred:.4f}"


def weight_of(scheme):
    total = 0.0
    for s in scheme.stages:
        total += s
    return total


@torch.compile(backend="eager", dynamic=False)
def advance(state, scheme, planner, step, rhs):
    n = planner.repeats(scheme)
    h = 0.05 * weight_of(scheme)
    for _ in range(n):
        state = step(rhs, state, h)
    return state


def initial(batch):
    grid = torch.linspace(0.5, 1.5, batch)
    return torch.stack([4.0 * grid, 1.0 / grid], dim=1)


def run(stepper, rhs, batch=5):
    planner = Planner(BUDGET)
    traj = Trajectory()
    state = initial(batch)
    for scheme in SCHEMES:
        state = advance(state, scheme, planner, STEPPERS[stepper], rhs)
        traj.push(scheme.label, state)
    return planner, traj


def main():
    systems = {"lv": partial(lotka_volterra, d=0.12), "damped": damped}
    for name, rhs in systems.items():
        planner, traj = run("heun" if name == "lv" else "euler", rhs)
        print(name, planner.decisions)
        for line in traj.summary():
            print("  " + line)


if __name__ == "__main__":
    main()
