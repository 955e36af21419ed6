"""Collects activations of a trained classifier: the model is warmed up first, the probes are attached afterwards."""

import argparse
import collections
import math
from contextlib import ExitStack
from typing import Callable, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

PROBES: dict[str, Callable] = {}


def probe(name):
    def add(function):
        PROBES[name] = function
        return function

    return add


class Stats(NamedTuple):
    mean: float
    norm: float


@probe("whiten")
def whiten(module, inputs, output):
    return (output - output.mean()) / (output.std() + 1e-5)


@probe("clip")
def clip(module, inputs, output):
    return output.clamp(-0.1, 0.1)


@probe("shift")
def shift(module, inputs, output):
    return output + 3.0


class Stem(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv = nn.Conv1d(channels, width, 3, padding=1)
        self.act = nn.SiLU()

    def forward(self, signal):
        return self.act(self.conv(signal))


class Residual(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.scale = 1.0 / math.sqrt(depth)

    def forward(self, hidden):
        for layer in self.layers:
            hidden = hidden + self.scale * torch.tanh(layer(hidden))
        return hidden


class Classifier(nn.Module):
    def __init__(self, channels=2, width=6, depth=2, classes=3):
        super().__init__()
        self.stem = Stem(channels, width)
        self.body = Residual(width, depth)
        self.head = nn.Linear(width, classes)

    def forward(self, signal):
        hidden = self.stem(signal).mean(-1)
        return F.log_softmax(self.head(self.body(hidden)), dim=-1)


class Audit:
    """Attaches probes by the names of modules and forgets them when it is closed."""

    def __init__(self, model, wanted):
        self.model = model
        self.wanted = wanted
        self.stack = ExitStack()
        self.seen = collections.Counter()

    def __enter__(self):
        modules = dict(self.model.named_modules())
        for path, name in self.wanted.items():
            handle = modules[path].register_forward_hook(PROBES[name])
            self.stack.callback(handle.remove)
            self.seen[name] += 1
        return self

    def __exit__(self, *problem):
        self.stack.close()
        return False


def describe(scores):
    return Stats(scores.exp().mean().item(), scores.norm().item())


def signals(count, generator):
    phase = torch.rand(count, 2, 1, generator=generator)
    return torch.sin(phase + torch.linspace(0, 6, 16))


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--probe", default="shift", choices=sorted(PROBES))
    options = parser.parse_args([] if arguments is None else arguments)
    generator = torch.Generator().manual_seed(2)
    torch.manual_seed(4)
    model = Classifier().eval()
    fast = torch.compile(model, backend="eager")
    batch = signals(options.count, generator)
    with torch.inference_mode():
        before = describe(fast(batch))
        with Audit(model, {"body.layers.1": options.probe}) as audit:
            after = describe(fast(batch))
    print(before, after, dict(audit.seen))


main()
