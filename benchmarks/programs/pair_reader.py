# torch: 2.8.0
import argparse
import re
from dataclasses import dataclass, field

import torch


@dataclass
class Token:
    kind: str
    value: object


@dataclass
class Curve:
    name: str
    knots: list = field(default_factory=list)
    closed: bool = False

    def add(self, t, v):
        self.knots.append((t, v))
        return self


class Lexer:
    spec = [
        ("number", r"-?\d+(?:\.\d+)?"),
        ("name", r"[a-z_]+"),
        ("open", r"\{"),
        ("close", r"\}"),
        ("skip", r"[\s,]+"),
    ]

    def __init__(self):
        self.pattern = re.compile("|".join(f"(?P<{n}>{p})" for n, p in self.spec))

    def tokens(self, text):
        for match in self.pattern.finditer(text):
            kind = match.lastgroup
            if kind == "skip":
                continue
            value = match.group()
            yield Token(kind, float(value) if kind == "number" else value)


def parse(text):
    curves = {}
    current = None
    for token in Lexer().tokens(text):
        if token.kind == "name" and token.value == "closed":
            current.closed = True
        elif token.kind == "name":
            current = Curve(token.value)
            curves[current.name] = current
            flat = []
        elif token.kind == "number":
            flat.append(token.value)
        elif token.kind == "close":
            current.knots = flat
    return curves


def lerp(a, b, w):
    return a + (b - a) * w


class Sampler:
    def __init__(self, curves, scale=1.0):
        self.curves = curves
        self.scale = scale
        self.evaluated = []

    def segments(self, knots):
        values = iter(knots)
        points = [(t, v) for t, v in zip(values, values)]
        return list(zip(points[:-1], points[1:])), len(points)

    def evaluate(self, time, name):
        curve = self.curves[name]
        segments, count = self.segments(curve.knots)
        out = torch.zeros_like(time)
        for (t0, v0), (t1, v1) in segments:
            width = max(t1 - t0, 1e-6)
            w = ((time - t0) / width).clamp(0.0, 1.0)
            inside = (time >= t0) & (time <= t1)
            out = torch.where(inside, lerp(v0, v1, w), out)
        self.evaluated.append((name, count))
        return out * self.scale


def envelope(time, sampler, names):
    total = torch.zeros_like(time)
    for name in names:
        total = total + sampler.evaluate(time, name)
    return total / max(len(names), 1)


def reference(knots, t):
    points = list(zip(knots[0::2], knots[1::2]))
    for (t0, v0), (t1, v1) in zip(points, points[1:]):
        if t0 <= t <= t1:
            result = v0 + (v1 - v0) * (t - t0) / (t1 - t0)
    return result


TEXT = """
attack { 0 0, 1 10, 4 4 }
release { 0 2, 2 2, 4 0 } closed
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--scale", type=float, default=2.0)
    args = parser.parse_args([])

    curves = parse(TEXT)
    assert curves["release"].closed and not curves["attack"].closed
    sampler = Sampler(curves, args.scale)
    time = torch.linspace(0.25, 3.25, args.steps)
    render = torch.compile(envelope, backend="eager")
    got = render(time, sampler, ["attack", "release"])

    want = []
    for t in time.tolist():
        parts = [reference(c.knots, t) for c in curves.values()]
        want.append(args.scale * sum(parts) / len(parts))
    torch.testing.assert_close(got, torch.tensor(want))
    assert sampler.evaluated == [("attack", 3), ("release", 3)], sampler.evaluated
    print("envelope", got.tolist())


if __name__ == "__main__":
    main()
