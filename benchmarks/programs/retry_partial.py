# torch: 2.8.0 2.13.0
"""Augmentation scheduler.  Each augmentation is curried step by step and audited before it runs."""
import functools
import json
import math

import torch

AUGS = {}


def aug(arity):
    def deco(fn):
        AUGS[fn.__name__] = (fn, arity)
        return fn

    return deco


@aug(3)
def affine(scale, shift, x):
    return x * scale + shift


@aug(4)
def window(lo, hi, slope, x):
    return (x - lo).clamp(0, hi - lo) * slope


@aug(2)
def power(exponent, x):
    return x.abs() ** exponent


def curry(fn, values):
    bound = fn
    for v in values:
        bound = functools.partial(bound, v)
    return bound


def missing(bound, arity):
    have = len(bound.args)
    return arity - have - 1


class Policy:
    def __init__(self, spec):
        self.spec = json.loads(spec)
        self.skipped = 0

    def __iter__(self):
        for row in self.spec:
            yield row["op"], row["values"]

    def apply(self, x):
        skipped = 0
        for op, values in self:
            fn, arity = AUGS[op]
            bound = curry(fn, values)
            if missing(bound, arity) > 0:
                skipped = skipped + 1
                continue
            x = bound(x)
        return x, skipped


SPEC = """[
 {"op": "affine", "values": [2.0, -0.5]},
 {"op": "window", "values": [-1.0, 1.5, 0.8]},
 {"op": "power", "values": [2.0]},
 {"op": "affine", "values": [3.0]}
]"""


def waves(n, length):
    t = torch.arange(length) / length
    return torch.stack([torch.sin(2 * math.pi * (k + 1) * t) for k in range(n)])


class Encoder(torch.nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.a = torch.nn.Linear(length, width)
        self.b = torch.nn.Linear(width, length)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def train(policy, steps=4):
    augment = torch.compile(policy.apply, backend="eager")
    x = waves(4, 16)
    net = Encoder(16, 5)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for _ in range(steps):
        noisy, skipped = augment(x)
        loss = (net(noisy) - x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        policy.skipped += skipped
    return noisy


def main():
    torch.manual_seed(11)
    policy = Policy(SPEC)
    noisy = train(policy)
    print("skipped", policy.skipped)
    print("mean after augmentation %.3f" % noisy.mean().item())


if __name__ == "__main__":
    main()
