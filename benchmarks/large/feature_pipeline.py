"""A feature pipeline made of closures: each factory returns a function, and the pipeline composes them by name."""

import functools
import operator

import torch

REGISTRY = {}


def register(name):
    def wrap(factory):
        REGISTRY[name] = factory
        return factory

    return wrap


@register("scale")
def make_scale(low=0.0, high=1.0):
    span = high - low

    def scale(batch, columns):
        out = dict(batch)
        for column in columns:
            out[column] = (batch[column] - low) / span
        return out

    return scale


@register("clip")
def make_clip(limit=3.0):
    def clip(batch, columns):
        return {name: value.clamp(-limit, limit) if name in columns else value for name, value in batch.items()}

    return clip


@register("select")
def make_select(drop=()):
    dropped = set(drop)

    def select(batch, columns):
        kept = set(columns)
        operator.isub(kept, dropped)
        return {name: batch[name] for name in sorted(kept)}

    return select


@register("interact")
def make_interact(pairs=()):
    def interact(batch, columns):
        out = dict(batch)
        for left, right in pairs:
            if left in batch and right in batch:
                out[f"{left}*{right}"] = batch[left] * batch[right]
        return out

    return interact


def compose(steps):
    def run(batch, columns):
        return functools.reduce(lambda acc, step: step(acc, [name for name in columns if name in acc]), steps, batch)

    return run


def build(spec):
    steps = []
    for name, options in spec:
        if name not in REGISTRY:
            raise KeyError(f"no step called {name}")
        steps.append(REGISTRY[name](**options))
    return compose(steps)


SPEC = [
    ("scale", {"low": -1.0, "high": 3.0}),
    ("clip", {"limit": 2.0}),
    ("interact", {"pairs": [("age", "income")]}),
    ("select", {"drop": ("id", "zip")}),
]


def synthetic(rows=10, seed=3):
    generator = torch.Generator().manual_seed(seed)
    names = ["age", "id", "income", "score", "zip"]
    return {name: torch.randn(rows, generator=generator) for name in names}


def summarise(features):
    return {name: (round(value.mean().item(), 4), round(value.std().item(), 4)) for name, value in features.items()}


def main():
    batch = synthetic()
    columns = tuple(batch)
    pipeline = build(SPEC)
    compiled = torch.compile(pipeline, backend="eager")
    expected, found = pipeline(batch, columns), compiled(batch, columns)
    print("eager   ", summarise(expected))
    print("compiled", summarise(found))
    assert sorted(expected) == sorted(found), f"columns differ: {sorted(expected)} and {sorted(found)}"
    for name in expected:
        torch.testing.assert_close(expected[name], found[name])


main()
