"""Train a controller against a plant that reports faults with numeric codes."""
import enum

import torch
from torch import nn


class Code(enum.Enum):
    OVERHEAT = 17
    STALL = 23


class Plant:
    def __init__(self, limit=3):
        self.limit = limit
        self.ticks = 0
        self.journal = []

    def tick(self, mode):
        self.ticks += 1
        if mode == "boost" and self.ticks % self.limit == 0:
            raise RuntimeError(Code.OVERHEAT.value)
        if mode == "idle" and self.ticks > 4 * self.limit:
            raise RuntimeError(Code.STALL.value)
        return 1.0 if mode == "boost" else 0.25


def describe(fault):
    text = str(fault)
    return "fault " + text


class Policy(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.inp = nn.Linear(3, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, obs):
        return self.out(torch.tanh(self.inp(obs)))


def make_step(policy, plant, backend):
    @torch.compile(backend=backend, dynamic=False)
    def step(obs, mode):
        force = policy(obs)
        try:
            gain = plant.tick(mode)
        except RuntimeError as fault:
            plant.journal.append(describe(fault))
            gain = -0.5
        reward = gain * force.squeeze(-1) - 0.01 * force.square().sum(-1)
        return obs * 0.9 + 0.1 * force, reward

    return step


def rollout(step, obs, modes):
    rewards = []
    for mode in modes:
        obs, reward = step(obs, mode)
        rewards.append(reward.mean())
    return torch.stack(rewards).sum()


def main():
    torch.manual_seed(3)
    policy = Policy()
    plant = Plant()
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
    step = make_step(policy, plant, "eager")
    plan = ["idle", "idle", "boost"]
    history = []
    for epoch in range(3):
        optimizer.zero_grad()
        obs = torch.linspace(-1, 1, 12).view(4, 3)
        ret = rollout(step, obs, plan)
        (-ret).backward()
        optimizer.step()
        history.append(ret.item())
    print("returns", [f"{h:.4f}" for h in history])
    print("journal", plant.journal)
    assert plant.journal[0] == "fault 17", plant.journal


if __name__ == "__main__":
    main()
