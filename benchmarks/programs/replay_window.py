# torch: 2.8.0
"""Small actor-critic style rollout with a bounded history of observations."""
import collections
import dataclasses

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class RolloutConfig:
    obs_dim: int = 3
    actions: int = 2
    horizon: int = 6
    window: int = 3
    gamma: float = 0.9
    seed: int = 7


class Environment:
    """A deterministic pendulum-like environment."""

    def __init__(self, dim):
        self.dim = dim
        rot = torch.eye(dim)
        rot[0, 1], rot[1, 0] = -0.4, 0.4
        self.transition = 0.95 * rot
        self.push = torch.linspace(-0.1, 0.1, dim)

    def reset(self):
        return torch.linspace(1.0, 0.2, self.dim)

    def step(self, obs, action):
        nxt = self.transition @ obs + (2 * action - 1) * self.push
        reward = -(nxt ** 2).sum()
        return nxt, reward


class Policy(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.encode = nn.Linear(cfg.obs_dim, 5)
        self.actor = nn.Linear(5, cfg.actions)
        self.critic = nn.Linear(5, 1)

    def forward(self, summary):
        h = torch.tanh(self.encode(summary))
        return self.actor(h), self.critic(h).squeeze(-1)


def summarise(history):
    stacked = torch.stack(list(history))
    weights = torch.arange(1, stacked.shape[0] + 1, dtype=stacked.dtype)
    return (weights[:, None] * stacked).sum(0) / weights.sum()


def discounted(rewards, gamma):
    out = []
    running = torch.zeros(())
    for r in reversed(rewards):
        running = r + gamma * running
        out.append(running)
    out.reverse()
    return torch.stack(out)


def rollout(policy, env, cfg, obs):
    history = collections.deque(maxlen=cfg.window)
    values, rewards, logits_all = [], [], []
    for t in range(cfg.horizon):
        history.append(obs)
        logits, value = policy(summarise(history))
        soft = torch.softmax(logits, dim=-1)[1]
        obs, reward = env.step(obs, soft)
        values.append(value)
        rewards.append(reward)
        logits_all.append(logits)
    returns = discounted(rewards, cfg.gamma)
    advantage = returns - torch.stack(values)
    return advantage, torch.stack(logits_all)


compiled_rollout = torch.compile(rollout, backend="eager")


def loss_fn(advantage, logits):
    logp = torch.log_softmax(logits, dim=-1)[:, 1]
    policy_loss = -(logp * advantage.detach()).mean()
    value_loss = advantage.pow(2).mean()
    return policy_loss + 0.5 * value_loss


def main():
    cfg = RolloutConfig()
    torch.manual_seed(cfg.seed)
    env = Environment(cfg.obs_dim)
    policy = Policy(cfg)
    opt = torch.optim.Adam(policy.parameters(), lr=0.02)
    for it in range(3):
        advantage, logits = compiled_rollout(policy, env, cfg, env.reset())
        loss = loss_fn(advantage, logits)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"iter {it} loss {loss.item():.5f} adv {advantage[-1].item():.5f}")


if __name__ == "__main__":
    main()
