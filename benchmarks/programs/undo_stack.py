# torch: 2.8.0
"""A drawing canvas: layers of brush strokes with shared or private histories."""
import argparse
import random

import torch


class Stroke:
    def __init__(self, row, col, value):
        self.row, self.col, self.value = row, col, value

    @classmethod
    def sample(cls, rng, size):
        return cls(rng.randrange(size), rng.randrange(size), rng.random())


class History(list):
    pass


class Layer:
    def __init__(self, size, history, name):
        self.pixels = torch.zeros(size, size)
        self.history = history
        self.name = name

    def paint(self, stroke):
        self.pixels[stroke.row, stroke.col] += stroke.value

    def energy(self):
        return self.pixels.sum().item()


def fade(pixels, undo, redo):
    undo.append(len(undo) + 1)
    depth = len(redo)
    return pixels * (1.0 - 0.1 * depth)


def shade(pixels, undo, redo):
    pixels = fade(pixels, undo, redo)
    return pixels + 0.01 * len(undo)


class Canvas:
    def __init__(self, size, seed):
        self.size = size
        self.rng = random.Random(seed)
        self.layers = {}
        self.shade = torch.compile(shade, backend="eager")

    def add(self, name):
        self.layers[name] = Layer(self.size, [], name)
        return self.layers[name]

    def scribble(self, name, count):
        layer = self.layers[name]
        for _ in range(count):
            layer.paint(Stroke.sample(self.rng, self.size))

    def private(self, name):
        layer = self.layers[name]
        layer.pixels = self.shade(layer.pixels, layer.history, [])
        return layer

    def linked(self, name):
        layer = self.layers[name]
        layer.pixels = self.shade(layer.pixels, layer.history, layer.history)
        return layer


def forecast(layer, depth):
    return layer.pixels * (1.0 - 0.1 * depth) + 0.01


def actions(canvas, plan):
    for name, action in plan:
        canvas.add(name)
        canvas.scribble(name, 6)
        depth = 1 if action == "linked" else 0
        want = forecast(canvas.layers[name], depth)
        got = getattr(canvas, action)(name)
        yield name, want, got


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--size", type=int, default=5)
    p.add_argument("--seed", type=int, default=17)
    return p.parse_args()


def main():
    args = parse()
    canvas = Canvas(args.size, args.seed)
    plan = [("ink", "private"), ("wash", "linked"), ("chalk", "private")]
    off = {}
    for name, want, got in actions(canvas, plan):
        off[name] = (want - got.pixels).abs().max().item()
        assert got.history == [1]
    print({n: round(v, 5) for n, v in off.items()})
    assert all(v < 1e-6 for v in off.values()), f"layers differ from the forecast: {off}"


if __name__ == "__main__":
    main()
