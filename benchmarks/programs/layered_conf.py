"""A trainer whose options are layered: overrides on top of defaults."""
import collections

import torch
from torch import nn

DEFAULTS = {"dropout": 0.0, "temperature": 1.0, "penalty": 0.01}


class Options:
    """Layered lookups with scoped overrides."""

    def __init__(self, defaults):
        self.layers = collections.ChainMap({}, defaults)

    def __getitem__(self, key):
        return self.layers[key]

    def override(self, **values):
        return Override(self, values)


class Override:
    def __init__(self, options, values):
        self.options, self.values = options, values

    def __enter__(self):
        self.options.layers.maps[0].update(self.values)
        return self.options

    def __exit__(self, *exc):
        for key in self.values:
            del self.options.layers.maps[0][key]


class Classifier(nn.Module):
    def __init__(self, options, features=6, classes=3):
        super().__init__()
        self.options = options
        self.proj = nn.Linear(features, 8)
        self.out = nn.Linear(8, classes)

    def logits(self, x):
        return self.out(torch.tanh(self.proj(x)))

    def forward(self, x):
        scaled = self.logits(x) / self.options["temperature"]
        return scaled.log_softmax(-1)


def nll(logp, y):
    return -logp.gather(1, y[:, None]).mean()


def toy(n=30):
    x = torch.linspace(-2, 2, n * 6).view(6, n).t().sin()
    y = (x.sum(1) > 0).long() + (x[:, 0] > 0.5).long()
    return x, y


def train(model, forward, x, y, steps=15):
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        loss = nll(forward(x), y)
        loss = loss + model.options["penalty"] * model.out.weight.square().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


@torch.no_grad()
def calibrate(options, forward, x, y, grid=(0.5, 2.0, 4.0)):
    """Scores of a temperature sweep."""
    scores = {1.0: nll(forward(x), y).item()}
    for t in grid:
        with options.override(temperature=t):
            scores[t] = nll(forward(x), y).item()
    return scores


def main():
    torch.manual_seed(1)
    options = Options(DEFAULTS)
    model = Classifier(options)
    forward = torch.compile(model, backend="eager")
    x, y = toy()
    print("train loss", round(train(model, forward, x, y), 4))
    scores = calibrate(options, forward, x, y)
    for t, s in scores.items():
        print(f"T={t:<4} nll={s:.5f}")
    best = min(scores, key=scores.get)
    print("best temperature", best)
    assert len(set(scores.values())) == len(scores)


if __name__ == "__main__":
    main()
