"""A solver whose steps are observed: every integrator writes what it did to the log of the run that made it."""

from __future__ import annotations

import abc
import enum
import itertools
import json

import torch


class Method(enum.Enum):
    EULER = "euler"
    HEUN = "heun"


class System(abc.ABC):
    @abc.abstractmethod
    def slope(self, time, state):
        raise NotImplementedError

    def energy(self, state):
        return state.square().sum(-1)


class Oscillator(System):
    def __init__(self, stiffness, damping=0.1):
        self.matrix = torch.tensor([[0.0, 1.0], [-stiffness, -damping]])

    def slope(self, time, state):
        return state @ self.matrix.T


class Forced(Oscillator):
    def __init__(self, *args, amplitude=0.3, **kwargs):
        super().__init__(*args, **kwargs)
        self.amplitude = amplitude

    def slope(self, time, state):
        push = torch.stack([torch.zeros_like(state[..., 0]), self.amplitude * torch.cos(time + state[..., 0])], -1)
        return super().slope(time, state) + push


def make_integrator(system, method, step):
    """The step function of a method, and the log that it writes to."""
    log = []
    counter = itertools.count()

    class Event:
        def __init__(self, kind):
            self.kind = kind

        def write(self, **details):
            log.append({"kind": self.kind, **details})

    def euler(time, state):
        return state + step * system.slope(time, state)

    def heun(time, state):
        first = system.slope(time, state)
        second = system.slope(time + step, state + step * first)
        return state + 0.5 * step * (first + second)

    chosen = {Method.EULER: euler, Method.HEUN: heun}[method]

    def advance(time, state):
        event = Event("step")
        moved = chosen(time, state)
        event.write(size=state.shape[0], method=method.value)
        return moved, system.energy(moved)

    next(counter)
    return advance, log


def integrate(advance, state, steps, step):
    time, energies = torch.zeros(()), []
    for _ in range(steps):
        state, energy = advance(time, state)
        time = time + step
        energies.append(energy)
    return state, torch.stack(energies)


def report(log, energies):
    return json.dumps({"events": len(log), "kinds": sorted({item["kind"] for item in log}), "rows": energies.shape[0]})


def solve(method=Method.HEUN, step=0.05, steps=4, rows=3):
    torch.manual_seed(8)
    advance, log = make_integrator(Forced(2.0, amplitude=0.2), method, step)
    compiled = torch.compile(advance, backend="eager")
    _, energies = integrate(compiled, torch.randn(rows, 2), steps, step)
    assert len(log) == steps, f"{len(log)} events of {steps} steps"
    return report(log, energies)


def main():
    for method in Method:
        print(method.name, solve(method))


if __name__ == "__main__":
    main()
