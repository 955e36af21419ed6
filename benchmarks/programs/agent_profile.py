# torch: 2.13.0
import torch
from torch import nn

REGISTRY = {}


def register(name):
    def wrap(cls):
        REGISTRY[name] = cls
        cls.label = name
        return cls

    return wrap


class Agent:
    step_size = 0.25
    momentum = 0.5
    label = "base"

    def __init__(self, dim):
        self.velocity = torch.zeros(dim)

    def force(self, position):
        raise NotImplementedError

    def move(self, position):
        self.velocity = self.velocity * self.momentum + self.force(position)
        return position + self.step_size * self.velocity


@register("spring")
class SpringAgent(Agent):
    stiffness = 0.8

    def force(self, position):
        return -self.stiffness * position


@register("drift")
class DriftAgent(Agent):
    momentum = 0.9

    def force(self, position):
        return torch.ones_like(position) * 0.1


@register("damped")
class DampedSpring(Agent):
    friction = 0.01

    def force(self, position):
        return -SpringAgent.stiffness * position

    def move(self, position):
        return super().move(position) * (1.0 - self.friction)


class Simulation(nn.Module):
    def __init__(self, names, dim):
        super().__init__()
        self.agents = [REGISTRY[name](dim) for name in names]

    def forward(self, positions):
        rows = []
        for agent, position in zip(self.agents, positions.unbind(0)):
            rows.append(agent.move(position))
        return torch.stack(rows)


class Annealer:
    def __init__(self, factor, every):
        self.factor = factor
        self.every = every

    def apply(self, tick, classes):
        if tick == 0 or tick % self.every:
            return False
        for cls in classes:
            cls.step_size = cls.step_size * self.factor
        return True


class Reference:
    def __init__(self, kinds, dim):
        self.v = [torch.zeros(dim) for _ in kinds]
        self.kinds = kinds

    def advance(self, positions, step):
        out = []
        for i, kind in enumerate(self.kinds):
            p = positions[i]
            momentum = 0.9 if kind == "drift" else 0.5
            f = torch.full_like(p, 0.1) if kind == "drift" else -0.8 * p
            self.v[i] = self.v[i] * momentum + f
            p = p + step * self.v[i]
            out.append(p * 0.99 if kind == "damped" else p)
        return torch.stack(out)


def main():
    kinds = ["spring", "drift", "damped"]
    dim = 2
    world = Simulation(kinds, dim)
    advance = torch.compile(world, backend="eager")
    annealer = Annealer(0.5, every=4)
    classes = [SpringAgent, DriftAgent, DampedSpring]

    positions = torch.tensor([[1.0, -2.0], [0.5, 0.5], [3.0, 1.0]])
    mirror = positions.clone()
    reference = Reference(kinds, dim)
    step = Agent.step_size
    for tick in range(6):
        if annealer.apply(tick, classes):
            step *= annealer.factor
        positions = advance(positions)
        mirror = reference.advance(mirror, step)

    assert all(agent.velocity.shape == (dim,) for agent in world.agents)
    error = (positions - mirror).abs().max().item()
    if error > 1e-5:
        raise SystemExit(f"drifted by {error:.4f} with step {step}")
    print("final", positions.tolist())


if __name__ == "__main__":
    main()
