# torch: 2.13.0
"""Follow particles through noisy frames with alpha-beta filters. Each track may keep a tail of earlier positions.

The filters are closures that a factory builds from a specification; "tail=0" switches the tails off.
"""
import collections
import contextlib
import fractions
import inspect
import operator
import re
import statistics
from functools import partial, reduce, singledispatch
from types import MappingProxyType, SimpleNamespace

import torch

SPEC = "alpha=1/2 beta=1/4 gate=3 tail=0"
PLAIN = MappingProxyType({"alpha": "1/2", "beta": "1/10", "gate": "2", "tail": "4"})


def parse(text):
    pairs = dict(re.findall(r"(\w+)=(\S+)", text))
    unknown = pairs.keys() - PLAIN.keys()
    if unknown:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}")
    merged = {**PLAIN, **pairs}
    ns = SimpleNamespace(**{key: fractions.Fraction(value) for key, value in merged.items()})
    ns.tail = int(ns.tail)
    return ns


@singledispatch
def show(value):
    return repr(value)


@show.register
def _(value: torch.Tensor):
    return "[" + " ".join(f"{item:.2f}" for item in value.flatten()) + "]"


@show.register
def _(value: list):
    return ", ".join(map(show, value))


def predicted(state, dt):
    position, speed = state
    return position + speed * dt, speed


def corrected(state, seen, spec, dt):
    position, speed = state
    residual = seen - position
    inside = residual.norm(dim=-1, keepdim=True) < float(spec.gate)
    residual = torch.where(inside, residual, torch.zeros_like(residual))
    return position + float(spec.alpha) * residual, speed + float(spec.beta) / dt * residual


def make_filter(spec, dt=1.0):
    predict = partial(predicted, dt=dt)

    def smooth(history):
        if not history:
            return None
        weights = [0.5**age for age in range(len(history))]
        return sum(map(operator.mul, weights, reversed(history))) / sum(weights)

    def advance(state, frames):
        tail = collections.deque(maxlen=spec.tail)
        moved = torch.zeros(())
        for seen in frames:
            before = state[0]
            state = corrected(predict(state), seen, spec, dt)
            tail.append(state[0])
            moved = moved + (state[0] - before).abs().sum()
        mean = smooth(tail)
        return state, moved, mean if mean is not None else state[0], len(tail)

    return advance


def simulate(count, frames, seed):
    rng = torch.Generator().manual_seed(seed)
    at = torch.rand(count, 2, generator=rng) * 10
    speed = torch.randn(count, 2, generator=rng) * 0.3
    for _ in range(frames):
        at = at + speed
        at, speed = torch.where(at < 0, -at, at), torch.where(at < 0, -speed, speed)
        yield at + torch.randn(count, 2, generator=rng) * 0.05


def windows(frames, size):
    window = []
    for frame in frames:
        window.append(frame)
        if len(window) == size:
            yield tuple(window)
            window.clear()


class Board:
    """Where results are pinned; leaving it prints them."""

    def __init__(self, title):
        self.title, self.rows = title, []

    def pin(self, **row):
        self.rows.append(row)
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            print(self.title)
            for row in self.rows:
                print("  ", *(f"{key}={show(value)}" for key, value in row.items()))


def lengths(tree):
    if isinstance(tree, (tuple, list)):
        return reduce(operator.add, map(lengths, tree), 0)
    return tree.numel() if isinstance(tree, torch.Tensor) else 1


def main(text=SPEC):
    spec = parse(text)
    advance = torch.compile(make_filter(spec), backend="eager")
    assert list(inspect.signature(make_filter).parameters) == ["spec", "dt"]
    frames = simulate(3, 8, seed=5)
    first = next(frames)
    state = first, torch.zeros_like(first)
    kept = []
    with contextlib.ExitStack() as stack:
        board = stack.enter_context(Board("tracks"))
        for window in windows(frames, 3):
            state, moved, mean, tail = advance(state, window)
            kept.append(tail)
            board.pin(moved=moved, mean=mean[0], size=lengths(state))
        board.pin(tails=statistics.fmean(kept))
    if any(length > spec.tail for length in kept):
        print("a tail is longer than", spec.tail)


if __name__ == "__main__":
    main()
