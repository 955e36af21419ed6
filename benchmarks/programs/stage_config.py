# torch: 2.8.0
import argparse
import json
from dataclasses import dataclass, field

import torch

STAGES = {}


def stage(name):
    def decorate(fn):
        STAGES[name] = fn
        return fn

    return decorate


@stage("scale")
def scale(image, factor):
    return image * factor


@stage("shift")
def shift(image, dy, dx):
    return torch.roll(image, (int(dy), int(dx)), (0, 1))


@stage("mix")
def mix(image, *weights):
    out = torch.zeros_like(image)
    for i, weight in enumerate(weights):
        out = out + weight * torch.roll(image, i, 1)
    return out


@stage("clip")
def clip(image, low, high):
    return image.clamp(low, high)


@dataclass
class Record:
    name: str
    arguments: list
    peak: torch.Tensor


@dataclass
class Recipe:
    title: str
    steps: list = field(default_factory=list)

    @classmethod
    def parse(cls, text):
        lines = [line.strip() for line in text.strip().splitlines()]
        recipe = cls(lines[0].strip("[]"))
        for line in lines[1:]:
            if line and not line.startswith("#"):
                name, *numbers = line.split()
                recipe.steps.append([name] + [float(n) for n in numbers])
        return recipe


class Journal:
    def __init__(self):
        self.records = []

    def write(self, record):
        self.records.append(record)

    def signature(self):
        return [[r.name, r.arguments] for r in self.records]


class Renderer:
    def __init__(self, recipe, journal):
        self.recipe = recipe
        self.journal = journal

    def __call__(self, image):
        for step in self.recipe.steps:
            name, *arguments = step
            image = STAGES[name](image, *arguments)
            self.journal.write(Record(name, arguments, image.amax()))
        return image


def checkerboard(size):
    rows = torch.arange(size).unsqueeze(1)
    cols = torch.arange(size).unsqueeze(0)
    return ((rows + cols) % 2).float()


def replay(image, signature):
    for name, arguments in signature:
        image = STAGES[name](image, *arguments)
    return image


TEXT = """
[softened board]
scale 3
# move it down by one row
shift 1 0
mix 0.5 0.25 0.25
clip 0.5 1.75
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=4)
    args = parser.parse_args([])

    recipe = Recipe.parse(TEXT)
    assert recipe.title == "softened board" and len(recipe.steps) == 4
    journal = Journal()
    render = torch.compile(Renderer(recipe, journal), backend="eager")
    board = checkerboard(args.size)
    image = render(board)
    assert image.shape == board.shape and image.max() <= 1.75

    signature = journal.signature()
    torch.testing.assert_close(replay(board, signature), image)
    stored = json.loads(json.dumps(signature))
    if stored != signature:
        different = [s[0] for s, t in zip(signature, stored) if s != t]
        raise ValueError(f"journal is not the same after a round trip: {different}")
    print("peaks", [round(r.peak.item(), 3) for r in journal.records])


if __name__ == "__main__":
    main()
