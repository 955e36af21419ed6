# torch: 2.13.0
"""Particles in a box which is periodic along some axes (open axes have an infinite period)."""
import dataclasses
import logging
import torch
from torch import Tensor

log = logging.getLogger("box")


@dataclasses.dataclass(frozen=True)
class Box:
    lengths: tuple

    @property
    def periods(self) -> Tensor:
        return torch.tensor([float("inf") if v is None else float(v) for v in self.lengths])


@dataclasses.dataclass
class State:
    pos: Tensor
    vel: Tensor
    t: float = 0.0

    def moved(self, **kw):
        return dataclasses.replace(self, **kw)


class Integrator(torch.nn.Module):
    def __init__(self, box, dt=0.1):
        super().__init__()
        self.register_buffer("period", box.periods)
        self.dt = dt

    def wrap(self, pos):
        return torch.remainder(pos, self.period)

    def force(self, pos):
        centre = pos.mean(0, keepdim=True)
        return -(pos - centre) * 0.1

    def forward(self, pos, vel):
        vel = vel + self.force(pos) * self.dt
        return self.wrap(pos + vel * self.dt), vel


class Observer:
    def __init__(self, every):
        self.every = every
        self.rows = []

    def __call__(self, i, state):
        if i % self.every == 0:
            lost = int((~torch.isfinite(state.pos)).any(1).sum())
            self.rows.append((round(state.t, 2), lost, state.pos[0].tolist()))


def simulate(state, integrator, steps, observers=()):
    step = torch.compile(integrator)
    for i in range(steps):
        with torch.no_grad():
            pos, vel = step(state.pos, state.vel)
        state = state.moved(pos=pos, vel=vel, t=state.t + integrator.dt)
        for ob in observers:
            ob(i, state)
    return state


def initial(n, dims):
    g = torch.Generator().manual_seed(13)
    pos = 1 + torch.rand(n, dims, generator=g) * 3
    vel = torch.rand(n, dims, generator=g)
    return State(pos, vel)


def main():
    box = Box((5.0, 4.0, None))
    ob = Observer(every=3)
    final = simulate(initial(6, 3), Integrator(box), 9, [ob])
    for t, lost, p in ob.rows:
        print(f"t={t} lost={lost} first=" + ",".join(f"{v:.2f}" for v in p))
    print("inside", bool((final.pos[:, 0] < 5).all()))


if __name__ == "__main__":
    main()
