# torch: 2.8.0
# Actor-critic on a corridor world.  `freeze_after` turns autograd off from inside the policy call once trained.
import random
import torch
from torch import nn


class Corridor:
    def __init__(self, n=5):
        self.n = n

    def reset(self):
        self.pos = self.n // 2
        return self.obs()

    def obs(self):
        return torch.eye(self.n)[self.pos]

    def step(self, action):
        self.pos += 1 if action else -1
        done = self.pos in (0, self.n - 1)
        return self.obs(), (1.0 if self.pos == self.n - 1 else -0.1), done


class Policy(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Linear(n, 8)
        self.pi = nn.Linear(8, 2)
        self.v = nn.Linear(8, 1)

    def forward(self, obs, frozen):
        if frozen:
            torch.set_grad_enabled(False)
        h = torch.tanh(self.body(obs))
        return self.pi(h), self.v(h).squeeze(-1)


class Agent:
    def __init__(self, env, freeze_after):
        self.env = env
        self.policy = Policy(env.n)
        self.act = torch.compile(self.policy, backend="aot_eager")
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=0.02)
        self.freeze_after = freeze_after
        self.updates = 0
        self.rng = random.Random(1)

    def rollout(self, frozen, limit=6):
        obs, traj = self.env.reset(), []
        for _ in range(limit):
            logits, value = self.act(obs, frozen)
            logp = logits.log_softmax(0)
            a = int(self.rng.random() < logp[1].exp().item())
            obs, r, done = self.env.step(a)
            traj.append((logp[a] * 1.0, value * 1.0, r))
            if done:
                break
        return traj

    def learn(self, traj):
        ret, loss = 0.0, 0.0
        for logp, value, r in reversed(traj):
            ret = r + 0.9 * ret
            adv = ret - value
            loss = loss - logp * adv.detach() + adv.square()
        if not loss.requires_grad:
            return
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1

    def run(self, episodes):
        for ep in range(episodes):
            self.learn(self.rollout(frozen=ep >= self.freeze_after))


def main():
    torch.manual_seed(0)
    agent = Agent(Corridor(), freeze_after=4)
    try:
        agent.run(7)
        print("autograd on at the end:", torch.is_grad_enabled())
    finally:
        torch.set_grad_enabled(True)
    print("updates", agent.updates)


main()
