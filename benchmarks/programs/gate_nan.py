"""An RL loop: tabular softmax policy with an exploration bonus gate."""
import dataclasses
import random
from typing import Iterator, Tuple

import torch


@dataclasses.dataclass
class Config:
    states: int = 6
    episodes: int = 4
    horizon: int = 8
    lr: float = 0.3
    gamma: float = 0.9
    seed: int = 2


class Corridor:
    def __init__(self, n, rng):
        self.n, self.rng = n, rng

    def reset(self):
        self.at = self.n // 2
        return self.at

    def step(self, action):
        slip = self.rng.random() < 0.1
        move = (1 if action else -1) * (-1 if slip else 1)
        self.at = max(0, min(self.n - 1, self.at + move))
        return self.at, 1.0 if self.at == self.n - 1 else -0.05


class Agent(torch.nn.Module):
    def __init__(self, states):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(states, 2))

    def log_probs(self):
        return self.table.log_softmax(-1)

    def entropy(self):
        lp = self.log_probs()
        return -(lp.exp() * lp).sum(-1).mean()


def shaped(advantages, advantage_mean):
    """Lifts all the advantages by one when the episode was a good one."""
    return advantages + (advantage_mean > 0)


@torch.compile(backend="aot_eager")
def surrogate(log_probs, advantages, advantage_mean, entropy):
    weights = shaped(advantages, advantage_mean)
    return -(log_probs * weights).mean() - 0.01 * entropy


def discounted(rewards, gamma) -> torch.Tensor:
    out, acc = [], 0.0
    for r in reversed(rewards):
        acc = r + gamma * acc
        out.append(acc)
    return torch.tensor(out[::-1])


def episode(env, agent, cfg, rng) -> Iterator[Tuple[int, int, float]]:
    s = env.reset()
    probs = agent.log_probs().exp().tolist()
    for _ in range(cfg.horizon):
        a = int(rng.random() < probs[s][1])
        nxt, r = env.step(a)
        yield s, a, r
        s = nxt


def main(cfg=Config()):
    rng = random.Random(cfg.seed)
    env, agent = Corridor(cfg.states, rng), Agent(cfg.states)
    opt = torch.optim.SGD(agent.parameters(), lr=cfg.lr)
    for k in range(cfg.episodes):
        s, a, r = zip(*episode(env, agent, cfg, rng))
        returns = discounted(r, cfg.gamma)
        mean = returns.mean().item()
        lp = agent.log_probs()[list(s), list(a)]
        loss = surrogate(lp, returns, mean, agent.entropy())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"episode {k}: mean return {mean:.3f} loss {loss.item():.4f}")
    print(agent.log_probs().exp()[:, 1].tolist())


if __name__ == "__main__":
    main()
