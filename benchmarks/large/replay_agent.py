#!/usr/bin/env python
# a small agent with an n-step replay; history length is configurable and 0 switches the history off
import collections
import random
import typing as t

import torch as th
import torch.nn.functional as fn

Transition = collections.namedtuple("Transition", ["state", "action", "reward", "done"])


class GridWorld:
    MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self, size: int = 4, seed: int = 0):
        self.size, self.rng = size, random.Random(seed)
        self.reset()

    def reset(self):
        self.position = (0, 0)
        self.goal = (self.size - 1, self.size - 1)
        return self.observe()

    def observe(self) -> th.Tensor:
        (r, c), (gr, gc) = self.position, self.goal
        return th.tensor([r, c, gr - r, gc - c], dtype=th.float32) / self.size

    def step(self, action: int):
        dr, dc = self.MOVES[action]
        r = min(max(self.position[0] + dr, 0), self.size - 1)
        c = min(max(self.position[1] + dc, 0), self.size - 1)
        self.position = (r, c)
        done = self.position == self.goal
        return self.observe(), 1.0 if done else -0.05, done


class History:
    def __init__(self, length: int):
        self.length = length

    def fold(self, rewards: t.Sequence[float], discount: float) -> float:
        """the discounted sum over the last `length` rewards"""
        window = collections.deque(rewards, maxlen=self.length)
        window.append(rewards[-1])
        total = 0.0
        for i, reward in enumerate(window):
            total += discount**i * reward
        return total


class Agent(th.nn.Module):
    def __init__(self, obs: int = 4, hidden: int = 16, actions: int = 4, history: int = 0, discount: float = 0.9):
        super().__init__()
        self.body = th.nn.Sequential(
            th.nn.Linear(obs, hidden), th.nn.ReLU(), th.nn.Linear(hidden, hidden), th.nn.ReLU()
        )
        self.advantage = th.nn.Linear(hidden, actions)
        self.value = th.nn.Linear(hidden, 1)
        self.history, self.discount = History(history), discount

    def q(self, state):
        h = self.body(state)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)

    def forward(self, state, rewards: list[float]):
        bonus = self.history.fold(rewards, self.discount)
        return self.q(state) + bonus

    @th.no_grad()
    def act(self, state, epsilon: float, rng: random.Random) -> int:
        if rng.random() < epsilon:
            return rng.randrange(4)
        return int(self.q(state).argmax())


def rollout(agent, world, steps: int, epsilon: float = 0.3):
    rng, memory, state = random.Random(1), [], world.reset()
    for _ in range(steps):
        action = agent.act(state, epsilon, rng)
        after, reward, done = world.step(action)
        memory.append(Transition(state, action, reward, done))
        state = world.reset() if done else after
    return memory


def losses(agent, forward, memory, size: int = 6):
    batch = memory[-size:]
    states = th.stack([item.state for item in batch])
    actions = th.tensor([[item.action] for item in batch])
    rewards = [item.reward for item in batch]
    chosen = forward(states, rewards).gather(1, actions).squeeze(1)
    target = th.tensor(rewards) + 0.9 * agent.q(states).max(-1).values.detach()
    return fn.smooth_l1_loss(chosen, target), chosen


def main(compile_it: bool) -> th.Tensor:
    th.manual_seed(0)
    agent, world = Agent(), GridWorld()
    forward = th.compile(agent, backend="eager") if compile_it else agent
    optimizer = th.optim.RMSprop(agent.parameters(), lr=1e-3)
    memory = rollout(agent, world, 20)
    for _ in range(2):
        loss, chosen = losses(agent, forward, memory)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", round(loss.item(), 5))
    return chosen.detach()


eager, compiled = main(False), main(True)
if not th.allclose(eager, compiled, atol=1e-4):
    raise SystemExit(f"values differ: {eager.tolist()} {compiled.tolist()}")
