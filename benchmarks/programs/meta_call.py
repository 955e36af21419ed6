# torch: 2.8.0
"""Predator/prey simulation on a torus, with value objects built by a metaclass."""
from __future__ import annotations

import abc
import itertools
import operator

import torch


class Configured(abc.ABCMeta):
    """Instances get the overrides of the active profile after __init__ ran."""

    profile: dict = {}

    def __call__(cls, *args, **kwargs):
        obj = super().__call__(*args, **kwargs)
        for key, value in Configured.profile.get(cls.__name__, {}).items():
            setattr(obj, key, value)
        return obj


class Kernel(metaclass=Configured):
    radius = 3.0
    gain = 1.0

    def __init__(self, sign):
        self.sign = sign

    @abc.abstractmethod
    def shape(self, dist):
        ...

    def __call__(self, delta):
        dist = delta.norm(dim=-1, keepdim=True).clamp(min=1e-3)
        return self.sign * self.gain * self.shape(dist) * delta / dist


class Linear(Kernel):
    def shape(self, dist):
        return (1 - dist / self.radius).clamp(min=0)


class Gaussian(Kernel):
    width = 1.5

    def shape(self, dist):
        return torch.exp(-(dist / self.width) ** 2)


Configured.profile = {
    "Linear": {"gain": 0.4},
    "Gaussian": {"width": 2.5, "gain": 0.8},
}


def wrap(delta, size):
    return delta - size * torch.round(delta / size)


@torch.compile(backend="eager")
def forces(prey, pred, size):
    flee = Gaussian(-1.0)
    herd = Linear(+1.0)
    chase = Linear(+1.0)
    to_pred = wrap(pred.unsqueeze(0) - prey.unsqueeze(1), size)
    to_prey = -to_pred.transpose(0, 1)
    among = wrap(prey.unsqueeze(0) - prey.unsqueeze(1), size)
    f_prey = flee(to_pred).sum(1) + herd(among).mean(1)
    f_pred = chase(to_prey).sum(1)
    return f_prey, f_pred


class World:
    def __init__(self, n_prey=14, n_pred=3, size=10.0, seed=4):
        gen = torch.Generator().manual_seed(seed)
        self.size = size
        self.prey = torch.rand(n_prey, 2, generator=gen) * size
        self.pred = torch.rand(n_pred, 2, generator=gen) * size
        self.v_prey = torch.zeros_like(self.prey)
        self.v_pred = torch.zeros_like(self.pred)
        self.clock = itertools.count(1)
        self.log = []

    def __iter__(self):
        return self

    def __next__(self):
        t = next(self.clock)
        f1, f2 = forces(self.prey, self.pred, self.size)
        self.v_prey = self._limit(0.8 * self.v_prey + 0.3 * f1, 0.6)
        self.v_pred = self._limit(0.9 * self.v_pred + 0.2 * f2, 0.7)
        self.prey = (self.prey + self.v_prey) % self.size
        self.pred = (self.pred + self.v_pred) % self.size
        self.log.append(self.measure(t))
        return self.log[-1]

    @staticmethod
    def _limit(v, vmax):
        speed = v.norm(dim=1, keepdim=True).clamp(min=1e-6)
        return v * (vmax / speed).clamp(max=1.0)

    def measure(self, t):
        gap = wrap(self.prey.unsqueeze(1) - self.pred, self.size).norm(dim=-1)
        return {
            "t": t,
            "closest": gap.min().item(),
            "spread": self.prey.std(dim=0).mean().item(),
            "speed": self.v_prey.norm(dim=1).mean().item(),
        }

    def ascii(self, cells=10):
        grid = [["." for _ in range(cells)] for _ in range(cells)]
        for mark, pts in (("o", self.prey), ("X", self.pred)):
            for x, y in (pts / self.size * cells).long().clamp(max=cells - 1).tolist():
                grid[y][x] = mark
        return "\n".join("".join(row) for row in grid)


world = World()
for row in itertools.islice(world, 12):
    if row["t"] % 4 == 0:
        print("t={t:2d} closest={closest:.3f} spread={spread:.3f} speed={speed:.3f}".format(**row))
print(world.ascii())

best = min(world.log, key=operator.itemgetter("closest"))
print("closest approach at step", best["t"], round(best["closest"], 4))
mean_speed = sum(map(operator.itemgetter("speed"), world.log)) / len(world.log)
print("mean speed", round(mean_speed, 4))
