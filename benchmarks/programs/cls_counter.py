# torch: 2.8.0
# Bandit / replay experiment. Each transition gets a serial number that drives its
# priority decay, the way small RL code bases often do it.
import collections
import random

import torch
from torch import nn

SEED = 13
random.seed(SEED)
torch.manual_seed(SEED)

SETTINGS = dict(arms=5, rounds=40, hidden=8, lr=0.05, batch=8, capacity=24, gamma=0.9,
                compile=dict(backend="eager"))


class Bandit:
    def __init__(self, n):
        self.means = torch.linspace(-1, 1, n)[torch.randperm(n)]
        self.n = n

    def context(self):
        return torch.randn(4)

    def pull(self, arm, ctx):
        return float(self.means[arm] + 0.3 * ctx[arm % 4] + 0.1 * torch.randn(()))

    @property
    def best(self):
        return int(self.means.argmax())


class Serial:
    """Hands out increasing numbers; one per object."""
    issued = 0

    def __init__(self):
        Serial.issued += 1


class Ticket(Serial):
    def __init__(self, tag):
        super().__init__()
        self.tag = tag


class QNet(nn.Module):
    def __init__(self, arms, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh())
        self.value = nn.Linear(hidden, 1)
        self.adv = nn.Linear(hidden, arms)

    def forward(self, ctx):
        h = self.body(ctx)
        a = self.adv(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


Transition = collections.namedtuple("Transition", "ctx arm reward priority")


class Replay:
    def __init__(self, capacity):
        self.data = collections.deque(maxlen=capacity)

    def __len__(self):
        return len(self.data)

    def add(self, tr):
        self.data.append(tr)

    def sample(self, k):
        weights = [max(t.priority, 1e-3) for t in self.data]
        rows = random.choices(list(self.data), weights=weights, k=k)
        return (torch.stack([r.ctx for r in rows]), torch.tensor([r.arm for r in rows]),
                torch.tensor([r.reward for r in rows]))


@torch.compile(**SETTINGS["compile"])
def assess(q_values, reward, arm):
    """TD error and age-weighted priority of a new transition."""
    ticket = Ticket("transition")
    td = reward - q_values[arm]
    age_bonus = 1.0 + 0.05 * Serial.issued
    priority = td.abs() * age_bonus
    return td, priority


def epsilon(step, total, start=1.0, end=0.1):
    frac = min(1.0, step / (0.6 * total))
    return start + (end - start) * frac


def choose(net, ctx, eps):
    if random.random() < eps:
        return random.randrange(SETTINGS["arms"])
    with torch.no_grad():
        return int(net(ctx).argmax())


def update(net, opt, batch):
    ctx, arm, reward = batch
    pred = net(ctx).gather(1, arm[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(pred, reward)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


bandit = Bandit(SETTINGS["arms"])
net = QNet(SETTINGS["arms"], SETTINGS["hidden"])
opt = torch.optim.Adam(net.parameters(), lr=SETTINGS["lr"])
replay = Replay(SETTINGS["capacity"])
pulls = collections.Counter()
trail = []

for step in range(SETTINGS["rounds"]):
    ctx = bandit.context()
    arm = choose(net, ctx, epsilon(step, SETTINGS["rounds"]))
    reward = bandit.pull(arm, ctx)
    pulls[arm] += 1
    with torch.no_grad():
        td, priority = assess(net(ctx), torch.tensor(reward), torch.tensor(arm))
    replay.add(Transition(ctx, arm, reward, priority.item()))
    trail.append(priority.item() / max(abs(td.item()), 1e-9))
    if len(replay) >= SETTINGS["batch"]:
        loss = update(net, opt, replay.sample(SETTINGS["batch"]))
        if step % 10 == 9:
            print(f"step {step:2d} loss {loss:.4f} priority {priority:.4f}")

print("pulls", dict(sorted(pulls.items())), "best arm", bandit.best)
print("bonus first/last", round(trail[0], 3), round(trail[-1], 3), "issued", Serial.issued)
