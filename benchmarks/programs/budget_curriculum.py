import collections
import enum
import itertools

import torch
import torch.nn.functional as F


class Phase(enum.Enum):
    WARM = "warm"
    MAIN = "main"
    COOL = "cool"


Stage = collections.namedtuple("Stage", ["phase", "steps", "scale"])

PLAN = [
    Stage(Phase.WARM, 2, 0.1),
    Stage(Phase.MAIN, 3, 1.0),
    Stage(Phase.COOL, 1, 0.01),
]


def run_stage(stage):
    """Yields one weight per step, hands back the total that was spent."""
    spent = 0.0
    for k in range(stage.steps):
        weight = stage.scale * (k + 1)
        spent += weight
        yield weight
    return spent


def run_plan(plan):
    """Yields the step weights of every stage, then the budget of each stage."""
    totals = []
    for stage in plan:
        total = yield from run_stage(stage)
        totals.append(total)
    for total in totals:
        yield total


class BudgetLoss(torch.nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.plan = plan
        self.n_steps = sum(s.steps for s in plan)
        self.n_stages = len(plan)

    def forward(self, pred, target):
        base = F.mse_loss(pred, target)
        weights = list(run_plan(self.plan))
        steps = weights[: self.n_steps]
        budgets = weights[self.n_steps:]
        loss = base * 0
        for w in steps:
            loss = loss + base * w
        if all(b for b in budgets):
            loss = loss / sum(budgets)
        return loss, len(budgets)


class Regressor(torch.nn.Module):
    def __init__(self, width=6):
        super().__init__()
        layers = [torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)]
        self.net = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x).squeeze(-1)


def batches(n, size, seed=3):
    gen = torch.Generator().manual_seed(seed)
    for _ in itertools.repeat(None, n):
        x = torch.randn(size, 3, generator=gen)
        yield x, x.sum(dim=1)


def train(loss_fn, steps=4):
    torch.manual_seed(11)
    model = Regressor()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    history = []
    for x, y in batches(steps, 8):
        opt.zero_grad()
        loss, _ = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        history.append(loss.item())
    return history


criterion = BudgetLoss(PLAN)
want = train(criterion)
got = train(torch.compile(criterion, backend="eager"))
print("eager   ", ["%.4f" % v for v in want])
print("compiled", ["%.4f" % v for v in got])
for a, b in zip(want, got):
    assert abs(a - b) < 1e-4, (a, b)
