"""Diffusion-like smoothing on a ring with a record of the used settings."""
import logging
import math

import torch

logger = logging.getLogger(__name__)


class History(list):
    def last(self, key):
        return self[-1][key]

    def series(self, key):
        return [entry[key] for entry in self]


def laplacian(u):
    return torch.roll(u, 1, -1) - 2 * u + torch.roll(u, -1, -1)


def cosine_schedule(step, total):
    return 0.5 * (1 + math.cos(math.pi * step / total))


def settings(step, total, stiffness):
    """Settings of one step, as a plain dict (via locals, to save typing)."""
    rate = 0.2 * cosine_schedule(step, total)
    cooled = rate * (1 - stiffness)
    return locals()


def integrate(u, used):
    u = u + used["rate"] * laplacian(u)
    return u - used["cooled"] * 0.1 * u ** 3


class Simulator:
    def __init__(self, size, total, compile=True, stiffness=0.3):
        self.total = total
        self.stiffness = stiffness
        x = torch.arange(size) * (2 * math.pi / size)
        self.u = torch.sin(x) + 0.5 * torch.sign(torch.cos(3 * x))
        self.history = History()
        self._settings, self._integrate = settings, integrate
        if compile:
            self._settings = torch.compile(settings, backend="eager", dynamic=False)
            self._integrate = torch.compile(integrate, backend="eager", dynamic=False)

    def __iter__(self):
        for step in range(self.total):
            used = self._settings(step, self.total, self.stiffness)
            self.u = self._integrate(self.u, used)
            self.history.append(used)
            yield step, self.roughness()

    def roughness(self):
        return laplacian(self.u).abs().mean().item()


def report(simulator):
    lines = []
    for step, rough in simulator:
        logger.debug("step %d roughness %.4f", step, rough)
        lines.append(f"{step}: {rough:.5f}")
    return lines


def main():
    logging.basicConfig(level=logging.INFO)
    sim = Simulator(size=32, total=4)
    for line in report(sim):
        print(line)
    rates = sim.history.series("rate")
    print("rates", [round(r, 4) for r in rates])
    print("final", round(sim.u.square().mean().item(), 6))


if __name__ == "__main__":
    main()
