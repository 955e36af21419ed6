"""Multi task training: the heads without a label in a batch must stay put."""
import collections

import torch
from torch import nn

Task = collections.namedtuple("Task", "name classes")


class MultiHead(nn.Module):
    def __init__(self, tasks, features=6, width=12):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, width), nn.Tanh())
        self.heads = nn.ModuleDict(
            {t.name: nn.Linear(width, t.classes) for t in tasks})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


class DecayedSGD:
    """SGD with decoupled weight decay for those parameters with a gradient."""

    def __init__(self, params, lr=0.1, decay=0.2):
        self.params = list(params)
        self.lr, self.decay = lr, decay
        self.updates = collections.Counter()

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            p.mul_(1 - self.lr * self.decay)
            p.add_(p.grad, alpha=-self.lr)
            self.updates[i] += 1


def batches(tasks, rounds):
    g = torch.Generator().manual_seed(4)
    for r in range(rounds):
        task = tasks[0] if r % 4 else tasks[1]
        x = torch.randn(10, 6, generator=g)
        y = (x.sum(1).abs() * 1.3).long() % task.classes
        yield task, x, y


def train(model, forward, tasks, rounds=8):
    opt = DecayedSGD(model.parameters())
    losses = collections.defaultdict(list)
    for task, x, y in batches(tasks, rounds):
        logits = forward(x)[task.name]
        loss = nn.functional.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses[task.name].append(loss.item())
    return losses, opt.updates


def run(wrap):
    torch.manual_seed(0)
    tasks = [Task("color", 4), Task("shape", 3)]
    model = MultiHead(tasks)
    losses, updates = train(model, wrap(model), tasks)
    norms = {k: h.weight.norm().item() for k, h in model.heads.items()}
    return losses, updates, norms


if __name__ == "__main__":
    reference = run(lambda m: m)
    compiled = run(lambda m: torch.compile(m, backend="aot_eager"))
    for label, (losses, updates, norms) in (
            ("eager", reference), ("compiled", compiled)):
        print(label, {k: round(v, 4) for k, v in norms.items()})
        print("   last losses", {k: round(v[-1], 4) for k, v in losses.items()})
    for name, norm in reference[2].items():
        assert abs(norm - compiled[2][name]) < 1e-3, name
