# torch: 2.8.0
"""Molecular-dynamics toy: two kinds of walls, forces from torch.func.grad, leapfrog.

Energies are collected per particle and per term in one buffer (particle, term), as
our analysis code likes to have them.  The force routine is compiled as a whole.
"""
import math
from typing import Callable, Dict, List, NamedTuple, Protocol, Tuple

import torch
from torch import Tensor
from torch.func import grad

# columns of the energy buffer
SPRING, WALL, FLOOR = 0, 1, 2
DT = 0.05
MASS = 1.5


class Frame(NamedTuple):
    pos: Tensor
    vel: Tensor
    time: float

    def kinetic(self) -> float:
        return float(0.5 * MASS * self.vel.pow(2).sum())


class Thermostat(Protocol):
    def __call__(self, vel: Tensor) -> Tensor:
        ...


class Rescale:
    """Berendsen-like velocity rescaling"""

    def __init__(self, target: float, strength: float = 0.1) -> None:
        self.target = target
        self.strength = strength

    def __call__(self, vel: Tensor) -> Tensor:
        now = 0.5 * MASS * vel.pow(2).mean()
        factor = 1 + self.strength * (self.target / (now + 1e-6) - 1)
        return vel * factor.clamp_min(0.0).sqrt()


class NoThermostat:
    def __call__(self, vel: Tensor) -> Tensor:
        return vel


def no_drift(vel: Tensor) -> Tensor:
    return vel - vel.mean(0, keepdim=True)


class ForceField:
    def __init__(self, k: float = 0.2, wall: float = 0.7) -> None:
        self.k = k
        self.wall = wall

    def terms(self, pos: Tensor) -> Tensor:
        """(N, 3) positions -> (N, 3) energies, see the column constants"""
        energy = torch.zeros_like(pos)
        energy[:, SPRING] += self.k * pos[:, 1] ** 2
        # walls at both sides of the box: one contribution from each
        energy[:, WALL] += self.wall * pos[:, 0].abs()
        energy[:, WALL] += self.wall * pos[:, 0].abs()
        energy[:, FLOOR] += pos[:, 2] ** 2 / 2
        return energy

    def potential(self, pos: Tensor) -> Tensor:
        return self.terms(pos).sum()

    def forces(self, pos: Tensor) -> Tensor:
        return -grad(self.potential)(pos)


class Leapfrog:
    def __init__(self, force: Callable[[Tensor], Tensor], thermostat: Thermostat) -> None:
        self.force = force
        self.thermostat = thermostat

    def step(self, frame: Frame) -> Tuple[Frame, Tensor]:
        f = self.force(frame.pos)
        vel = frame.vel + DT * f / MASS
        vel = self.thermostat(vel)
        pos = frame.pos + DT * vel
        return Frame(pos, vel, frame.time + DT), f


class Trajectory:
    """Keeps what the analysis needs; frames themselves only every `stride` steps"""

    def __init__(self, stride: int = 2) -> None:
        self.stride = stride
        self.frames: List[Frame] = []
        self.series: Dict[str, List[float]] = {}

    def log(self, **values: float) -> None:
        for key, value in values.items():
            self.series.setdefault(key, []).append(float(value))

    def add(self, index: int, frame: Frame) -> None:
        if index % self.stride == 0:
            self.frames.append(frame)

    def drift(self, key: str) -> float:
        s = self.series[key]
        return s[-1] - s[0]

    def __len__(self) -> int:
        return len(self.frames)


def lattice(n: int, spacing: float = 0.8) -> Tensor:
    """n particles on a jittered line, away from the walls' kink at zero"""
    base = torch.stack([
        spacing * (torch.arange(n) + 1.0),
        torch.linspace(-1, 1, n),
        torch.full((n,), 0.3),
    ], dim=1)
    return base + 0.05 * torch.rand(n, 3)


def maxwell(n: int, temperature: float) -> Tensor:
    return no_drift(torch.randn(n, 3) * math.sqrt(temperature / MASS))


def virial(pos: Tensor, force: Tensor) -> float:
    return float((pos * force).sum(-1).mean())


def bar(i: int, total: int, width: int = 12) -> str:
    full = width * (i + 1) // total
    return "[" + "#" * full + "." * (width - full) + "]"


def simulate(steps: int = 4, n: int = 4) -> Trajectory:
    field = ForceField()
    compiled = torch.compile(field.forces)
    integrator = Leapfrog(compiled, Rescale(0.5) if n > 8 else NoThermostat())
    frame = Frame(lattice(n), maxwell(n, 0.1), 0.0)
    traj = Trajectory()
    for i in range(steps):
        frame, f = integrator.step(frame)
        traj.add(i, frame)
        potential = field.potential(frame.pos)
        traj.log(
            potential=potential,
            kinetic=frame.kinetic(),
            total=potential + frame.kinetic(),
            virial=virial(frame.pos, f),
            wall_force=f[:, 0].abs().max(),
        )
        print(f"{bar(i, steps)} t={frame.time:.2f} E={traj.series['total'][-1]:.4f}")
    return traj


def main() -> None:
    traj = simulate()
    for key, values in traj.series.items():
        print(f"{key:>10}: {values[0]: .4f} .. {values[-1]: .4f}  (drift {traj.drift(key):+.4f})")
    # 2 walls of strength 0.7 each
    print("wall force as expected:", abs(traj.series["wall_force"][0] - 1.4) < 1e-4)


if __name__ == "__main__":
    main()
