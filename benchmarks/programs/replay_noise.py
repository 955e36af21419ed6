# torch: 2.8.0
"""Off-policy actor critic (TD3 flavour) on a one dimensional double integrator.

No gym needed, the environment is below.  The target policy smoothing is the old
code from 2018 which we never dared to touch.
"""
import copy
import random
from collections import deque
from dataclasses import dataclass
from typing import Deque, List, Optional, Tuple

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Transition:
    obs: torch.Tensor
    act: torch.Tensor
    rew: float
    nxt: torch.Tensor
    done: bool


class Cart:
    """Position and speed; the action is a push.  Ends when the cart leaves the track."""

    obs_dim, act_dim = 2, 1

    def __init__(self, track: float = 2.0, dt: float = 0.2) -> None:
        self.track, self.dt = track, dt
        self.state = torch.zeros(2)

    def reset(self) -> torch.Tensor:
        self.state = torch.empty(2).uniform_(-0.5, 0.5)
        return self.state.clone()

    def step(self, act: torch.Tensor) -> Tuple[torch.Tensor, float, bool]:
        pos, vel = self.state.tolist()
        push = float(act.clamp(-1, 1))
        vel += push * self.dt
        pos += vel * self.dt
        self.state = torch.tensor([pos, vel])
        reward = -(pos ** 2 + 0.1 * vel ** 2 + 0.01 * push ** 2)
        return self.state.clone(), reward, abs(pos) > self.track


class Replay:
    def __init__(self, capacity: int) -> None:
        self.data: Deque[Transition] = deque(maxlen=capacity)

    def push(self, tr: Transition) -> None:
        self.data.append(tr)

    def sample(self, n: int):
        picks: List[Transition] = random.choices(list(self.data), k=n)
        obs = torch.stack([p.obs for p in picks])
        act = torch.stack([p.act for p in picks])
        rew = torch.tensor([p.rew for p in picks]).unsqueeze(1)
        nxt = torch.stack([p.nxt for p in picks])
        done = torch.tensor([float(p.done) for p in picks]).unsqueeze(1)
        return obs, act, rew, nxt, done

    def __len__(self) -> int:
        return len(self.data)


def mlp(*sizes: int, out: Optional[nn.Module] = None) -> nn.Sequential:
    layers: List[nn.Module] = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    layers.pop()
    if out is not None:
        layers.append(out)
    return nn.Sequential(*layers)


class Actor(nn.Module):
    def __init__(self, obs: int, act: int, limit: float = 1.0) -> None:
        super().__init__()
        self.net = mlp(obs, 8, act, out=nn.Tanh())
        self.limit = limit

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.limit * self.net(obs)


class Twin(nn.Module):
    """Two critics, we take the pessimistic one"""

    def __init__(self, obs: int, act: int) -> None:
        super().__init__()
        self.q1 = mlp(obs + act, 8, 1)
        self.q2 = mlp(obs + act, 8, 1)

    def forward(self, obs, act):
        x = torch.cat([obs, act], -1)
        return self.q1(x), self.q2(x)

    def low(self, obs, act):
        return torch.min(*self(obs, act))


class Smoother(nn.Module):
    """Adds clipped noise to the actions of the target policy."""

    def __init__(self, sigma: float = 0.2, clip: float = 0.5) -> None:
        super().__init__()
        self.sigma, self.clip = sigma, clip

    def forward(self, act: torch.Tensor) -> torch.Tensor:
        noise = torch.Tensor(act.size()).normal_(0, self.sigma)
        noise = noise.clamp(-self.clip, self.clip)
        return (act + noise).clamp(-1.0, 1.0)


class Agent:
    gamma = 0.97
    tau = 0.05
    delay = 2

    def __init__(self, env: Cart) -> None:
        self.actor = Actor(env.obs_dim, env.act_dim)
        self.critic = Twin(env.obs_dim, env.act_dim)
        self.actor_t, self.critic_t = map(copy.deepcopy, (self.actor, self.critic))
        self.smooth = torch.compile(Smoother(), backend="eager")
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.updates = 0

    @torch.no_grad()
    def act(self, obs: torch.Tensor, eps: float = 0.3) -> torch.Tensor:
        return (self.actor(obs) + eps * torch.randn(1)).clamp(-1, 1)

    @torch.no_grad()
    def target(self, rew, nxt, done):
        act = self.smooth(self.actor_t(nxt))
        return rew + self.gamma * (1 - done) * self.critic_t.low(nxt, act)

    def sync(self) -> None:
        for live, slow in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
            for p, q in zip(live.parameters(), slow.parameters()):
                q.data.lerp_(p.data, self.tau)

    def update(self, batch) -> float:
        obs, act, rew, nxt, done = batch
        y = self.target(rew, nxt, done)
        a, b = self.critic(obs, act)
        loss = F.mse_loss(a, y) + F.mse_loss(b, y)
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        self.updates += 1
        if self.updates % self.delay == 0:
            pi_loss = -self.critic.q1(torch.cat([obs, self.actor(obs)], -1)).mean()
            self.opt_a.zero_grad()
            pi_loss.backward()
            self.opt_a.step()
            self.sync()
        return loss.item()


def main() -> None:
    random.seed(3)
    torch.manual_seed(3)
    env = Cart()
    agent = Agent(env)
    replay = Replay(50)
    obs, ret, losses = env.reset(), 0.0, []
    for t in range(16):
        act = agent.act(obs)
        nxt, rew, done = env.step(act)
        replay.push(Transition(obs, act, rew, nxt, done))
        ret += rew
        obs = env.reset() if done else nxt
        if len(replay) >= 8:
            try:
                losses.append(agent.update(replay.sample(5)))
            except Exception as exc:
                # a bad batch is no reason to lose the whole run
                print(f"step {t}: update failed: {exc}")
    print(f"return {ret:.3f}, {len(losses)} updates, last critic loss {losses[-1]:.3f}" if losses else "no update")


if __name__ == "__main__":
    main()
