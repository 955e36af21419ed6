# torch: 2.8.0
"""Evaluation suite: metrics accept plain tensors or richer predictions.

Predictions may carry calibrated probabilities as `.probs`; plain logits do
not and are normalised on the fly.
"""
import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

METRICS = {}


def metric(name, higher_is_better=True):
    def register(fn):
        METRICS[name] = (fn, higher_is_better)
        return fn
    return register


class Prediction:
    def __init__(self, logits, temperature=1.0):
        self.logits = logits
        self.temperature = temperature

    @property
    def probs(self):
        return F.softmax(self.logits / self.temperature, dim=-1)


def probabilities(pred):
    try:
        return pred.probs
    except AttributeError:
        return F.softmax(pred, dim=-1)


@metric("accuracy")
def accuracy(pred, target):
    return (probabilities(pred).argmax(-1) == target).float().mean()


@metric("brier", higher_is_better=False)
def brier(pred, target):
    p = probabilities(pred)
    onehot = F.one_hot(target, p.shape[-1]).to(p.dtype)
    return ((p - onehot) ** 2).sum(-1).mean()


@metric("nll", higher_is_better=False)
def nll(pred, target):
    p = probabilities(pred)
    return -p.gather(-1, target[:, None]).clamp_min(1e-6).log().mean()


class Suite:
    def __init__(self, names, backend):
        self.names = names
        self.compiled = {n: torch.compile(METRICS[n][0], backend=backend) for n in names}

    def evaluate(self, pred, target):
        return {n: float(self.compiled[n](pred, target)) for n in self.names}

    @staticmethod
    def better(name, a, b):
        _, higher = METRICS[name]
        return a > b if higher else a < b


class Classifier(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 16), nn.Tanh())
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.body(x))


def make_data(n, dim, classes, seed):
    g = torch.Generator().manual_seed(seed)
    centres = torch.randn(classes, dim, generator=g) * 2
    y = torch.arange(n) % classes
    x = centres[y] + torch.randn(n, dim, generator=g)
    return x, y


def train(model, x, y, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    return loss.item()


def parse(argv):
    p = argparse.ArgumentParser()
    p.add_argument("--samples", type=int, default=48)
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--metrics", nargs="*", default=sorted(METRICS))
    p.add_argument("--temperature", type=float, default=2.0)
    return p.parse_args(argv)


def main(argv=()):
    args = parse(argv)
    random.seed(0)
    torch.manual_seed(0)
    x, y = make_data(args.samples, 6, 3, seed=1)
    model = Classifier(6, 3)
    print("final loss %.4f" % train(model, x, y, args.epochs))
    suite = Suite(args.metrics, "eager")
    with torch.no_grad():
        logits = model(x)
    calibrated = suite.evaluate(Prediction(logits, args.temperature), y)
    raw = suite.evaluate(logits, y)
    for name in suite.names:
        mark = "*" if suite.better(name, calibrated[name], raw[name]) else " "
        print(f"{name:10s} raw={raw[name]:.4f} cal={calibrated[name]:.4f} {mark}")


if __name__ == "__main__":
    main()
