# torch: 2.8.0
"""Grid-world agent simulation with an event journal."""
import collections
import hashlib
import json

import torch


class JournalMixin:
    """Collects events per category and derives a fingerprint from them."""

    def start_journal(self):
        self.events = collections.defaultdict(list)
        self.digest_lines = []

    def note(self, kind, *payload):
        self.events[kind].append(payload)

    def flush(self, tick):
        self.digest_lines.append(f"{tick}: {self.events!r}")
        self.events = collections.defaultdict(list)

    def fingerprint(self):
        blob = json.dumps(self.digest_lines).encode()
        return hashlib.sha1(blob).hexdigest()[:12]


class World:
    def __init__(self, size=5):
        self.size = size
        self.field = torch.zeros(size, size)
        self.goal = (size - 1, size - 1)

    def wrap(self, pos):
        return tuple(p % self.size for p in pos)

    def diffuse(self):
        f = self.field
        near = f.roll(1, 0) + f.roll(-1, 0) + f.roll(1, 1) + f.roll(-1, 1)
        self.field = 0.6 * f + 0.1 * near


class Agent:
    moves = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}

    def __init__(self, name, pos, plan):
        self.name, self.pos, self.plan = name, pos, plan

    def step(self, world, tick):
        key = self.plan[tick % len(self.plan)]
        dr, dc = self.moves[key]
        self.pos = world.wrap((self.pos[0] + dr, self.pos[1] + dc))
        return key


class Simulation(JournalMixin):
    def __init__(self, world, agents, deposit=1.0):
        self.world = world
        self.agents = agents
        self.deposit = deposit
        self.start_journal()

    def advance(self, tick, noise):
        occupied = {}
        for agent in self.agents:
            move = agent.step(self.world, tick)
            self.note("move", agent.name, move)
            if agent.pos in occupied:
                self.note("collision", agent.name, occupied[agent.pos])
            occupied[agent.pos] = agent.name
            r, c = agent.pos
            bump = torch.zeros_like(self.world.field)
            bump[r, c] = self.deposit
            self.world.field = self.world.field + bump
        self.world.diffuse()
        self.world.field = self.world.field + noise * 0.01
        self.flush(tick)
        return self.world.field.sum()


def scenario():
    return Simulation(
        World(5),
        [Agent("ant", (0, 0), "ESES"), Agent("bee", (0, 2), "WSWN"), Agent("cat", (4, 4), "NNW")],
    )


def simulate(ticks, compiled):
    sim = scenario()
    advance = torch.compile(sim.advance, backend="eager") if compiled else sim.advance
    g = torch.Generator().manual_seed(1)
    energy = [advance(t, torch.randn(5, 5, generator=g)) for t in range(ticks)]
    return sim, torch.stack(energy)


def main():
    a, ea = simulate(4, compiled=False)
    b, eb = simulate(4, compiled=True)
    torch.testing.assert_close(eb, ea)
    print("eager journal   ", a.digest_lines[0])
    print("compiled journal", b.digest_lines[0])
    print("fingerprints", a.fingerprint(), b.fingerprint())
    assert a.fingerprint() == b.fingerprint(), "journals diverged"


if __name__ == "__main__":
    main()
