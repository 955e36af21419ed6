"""Population growth under several policies; fits the rate with Adam."""
import argparse
from abc import ABC, abstractmethod

import torch


class GrowthPolicy(ABC):
    name = "abstract"

    @abstractmethod
    def ceiling(self, generation: int) -> float:
        """Upper bound on the population in a generation."""


class Flat(GrowthPolicy):
    name = "flat"

    def ceiling(self, generation):
        return 50.0


class Doubling(GrowthPolicy):
    name = "doubling"

    def __init__(self, base=2.0, cap=1e6):
        self.base = base
        self.cap = cap

    def ceiling(self, generation):
        try:
            bound = self.base ** (generation * 400)
        except OverflowError:
            bound = self.cap
        return min(bound, self.cap)


class Colony(torch.nn.Module):
    def __init__(self, policies):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.tensor(0.1))
        self.policies = policies

    def grow(self, population, policy, generation):
        ceiling = policy.ceiling(generation)
        room = 1.0 - population / ceiling
        return population + self.rate * population * room

    def forward(self, population, generations):
        finals = []
        for policy in self.policies:
            p = population
            for generation in range(1, generations + 1):
                p = self.grow(p, policy, generation)
            finals.append(p.mean())
        return torch.stack(finals)


def fit(model, target, args):
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    compiled = torch.compile(model, backend=args.backend)
    start = torch.linspace(1.0, 4.0, 6)
    for step in range(args.steps):
        optimizer.zero_grad(set_to_none=True)
        finals = compiled(start, args.generations)
        loss = (finals - target).abs().sum()
        loss.backward()
        optimizer.step()
        yield step, loss.item(), finals.detach()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.02)
    return parser.parse_args()


if __name__ == "__main__":
    options = parse()
    colony = Colony([Flat(), Doubling()])
    goal = torch.tensor([6.0, 7.0])
    for step, loss, finals in fit(colony, goal, options):
        print(step, round(loss, 4), [round(v, 3) for v in finals.tolist()])
    print("rate", round(colony.rate.item(), 4))
