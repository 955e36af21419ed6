# torch: 2.13.0
import torch
from torch import nn


class Customers:
    def __init__(self, count, features, seed):
        gen = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, features, generator=gen)
        rule = torch.linspace(-1.0, 1.0, features)
        self.y = torch.where(self.x @ rule > 0, 1.0, -1.0)
        self.x[5] *= 400.0
        self.y[5] = -self.y[5]

    def batches(self, size):
        for start in range(0, len(self.x), size):
            yield self.x[start : start + size], self.y[start : start + size]


class Scorer(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1.0, 1.0, features))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x @ self.weight + self.bias


class Objective(nn.Module):
    def __init__(self, scorer, penalty):
        super().__init__()
        self.scorer = scorer
        self.penalty = penalty

    def forward(self, x, y):
        score = self.scorer(x)
        fit = nn.functional.soft_margin_loss(score, y)
        return fit + self.penalty * self.scorer.weight.square().sum()


class Guard:
    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.history = []

    def healthy(self):
        ok = all(torch.isfinite(p.grad).all().item() for p in self.parameters)
        self.history.append(ok)
        return ok

    @property
    def skipped(self):
        return [i for i, ok in enumerate(self.history) if not ok]


class Averager:
    def __init__(self, module, beta):
        self.beta = beta
        self.shadow = {k: v.detach().clone() for k, v in module.named_parameters()}

    @torch.no_grad()
    def update(self, module):
        for name, value in module.named_parameters():
            self.shadow[name].lerp_(value, 1.0 - self.beta)


class Trainer:
    def __init__(self, features, lr=0.05, beta=0.9):
        self.scorer = Scorer(features)
        objective = Objective(self.scorer, penalty=0.01)
        self.loss = torch.compile(objective, backend="aot_eager_decomp_partition")
        self.optimizer = torch.optim.SGD(self.scorer.parameters(), lr=lr)
        self.guard = Guard(self.scorer.parameters())
        self.average = Averager(self.scorer, beta)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        if self.guard.healthy():
            self.optimizer.step()
            self.average.update(self.scorer)
        return loss.item()

    def epoch(self, data, size):
        return [self.step(x, y) for x, y in data.batches(size)]


def accuracy(weight, bias, data):
    guess = torch.where(data.x @ weight + bias > 0, 1.0, -1.0)
    return (guess == data.y).float().mean().item()


def main():
    data = Customers(count=32, features=4, seed=9)
    trainer = Trainer(features=4)
    losses = []
    for _ in range(2):
        losses.append(trainer.epoch(data, size=4))
    flat = [v for epoch in losses for v in epoch]
    assert len(flat) == 16
    overflown = [i for i, v in enumerate(flat) if v == float("inf")]
    assert overflown and overflown[0] == 1, overflown
    weight = trainer.average.shadow["weight"]
    bias = trainer.average.shadow["bias"]
    score = accuracy(weight, bias, data)
    if trainer.guard.skipped != overflown or score < 0.9:
        raise RuntimeError(
            f"skipped {trainer.guard.skipped}, infinite loss at {overflown}, accuracy {score:.3f}"
        )
    print("accuracy", round(score, 3))


if __name__ == "__main__":
    main()
