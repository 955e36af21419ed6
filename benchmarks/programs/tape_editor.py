"""Edit control tapes for a small spring simulator and score them."""
import dataclasses
import logging
from typing import List

import torch

log = logging.getLogger("tape")


@dataclasses.dataclass
class SpringParams:
    mass: float = 1.0
    stiffness: float = 2.5
    damping: float = 0.1
    dt: float = 0.05


@dataclasses.dataclass
class Edit:
    start: int
    step: int
    values: List[float]


class Tape:
    """A list of impulses, with undoable strided edits."""

    def __init__(self, impulses):
        self.impulses = list(impulses)
        self.rejected = 0

    def __len__(self):
        return len(self.impulses)

    def apply(self, edit):
        cells = self.impulses
        try:
            cells[edit.start :: edit.step] = edit.values
        except ValueError:
            self.rejected += 1
            return False
        return True


class Spring(torch.nn.Module):
    def __init__(self, params):
        super().__init__()
        self.params = params

    def step(self, pos, vel, impulse):
        p = self.params
        acc = (-p.stiffness * pos - p.damping * vel + impulse) / p.mass
        vel = vel + p.dt * acc
        return pos + p.dt * vel, vel

    def energy(self, pos, vel):
        p = self.params
        return 0.5 * p.mass * vel.square() + 0.5 * p.stiffness * pos.square()

    def forward(self, pos, vel, tape, edit):
        accepted = tape.apply(edit)
        for impulse in tape.impulses:
            pos, vel = self.step(pos, vel, impulse)
        score = self.energy(pos, vel).sum()
        if not accepted:
            score = score + 1.0
        return score


def default_edits():
    return [
        Edit(0, 2, [0.5, 0.5, 0.5]),
        Edit(1, 2, [0.1, 0.2, 0.3]),
        Edit(0, 3, [1.0]),
        Edit(2, 2, [0.0, 0.0]),
    ]


def search(model, edits):
    scores = []
    rejected = 0
    for edit in edits:
        tape = Tape([0.1 * i for i in range(6)])
        pos = torch.linspace(-1.0, 1.0, 4)
        vel = torch.zeros(4)
        score = model(pos, vel, tape, edit)
        rejected += tape.rejected
        log.info("edit %s -> %.4f", edit, score.item())
        scores.append(score)
    return torch.stack(scores), rejected


def main():
    logging.basicConfig(level=logging.WARNING)
    model = Spring(SpringParams())
    model.compile(backend="eager")
    scores, rejected = search(model, default_edits())
    best = int(scores.argmin())
    print("scores", [round(s, 4) for s in scores.tolist()])
    print("best edit", best, "rejected", rejected)
    return scores


if __name__ == "__main__":
    main()
