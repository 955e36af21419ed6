"""Measure what ``torchbisect.api.capture`` adds to a training loop in which nothing goes wrong.

    python benchmarks/capture.py --steps 2000 --pairs 5

One compiled model is trained with the context around each step and without it, in turns in one process. The ratio is
that of the processor times of each pair. The model is small, so that a step is short: of a longer one less is added.
Calls that are compared with eager are in it, at their rate.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from torchbisect.api import capture


def training_step(width: int, backend: str) -> Callable[[], None]:
    """Return one step of training a compiled model."""
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width))
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    inputs = torch.randn(64, width)

    def step() -> None:
        optimizer.zero_grad()
        compiled(inputs).square().mean().backward()
        optimizer.step()

    return step


def processor_seconds(step: Callable[[], None], steps: int, folder: Path | None, every: int) -> float:
    """Return the processor time of so many steps, watched if there is a folder."""
    began = time.process_time()
    for _ in range(steps):
        with contextlib.nullcontext() if folder is None else capture(folder, every=every):
            step()
    return time.process_time() - began


def main() -> None:
    """Run the pairs and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--backend", default="aot_eager")
    given = parser.parse_args()
    torch.set_num_threads(1)
    step = training_step(given.width, given.backend)
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        processor_seconds(step, 20, Path(name), given.every)
        for _ in range(given.pairs):
            plain = processor_seconds(step, given.steps, None, given.every)
            watched = processor_seconds(step, given.steps, Path(name), given.every)
            ratios.append(watched / plain)
            each = 1e6 / given.steps
            print(f"a step: {plain * each:.0f} us, watched {watched * each:.0f} us, ratio {ratios[-1]:.3f}")
        print(f"median ratio {statistics.median(ratios):.3f}; scripts left: {len(list(Path(name).glob('*/repro.py')))}")


if __name__ == "__main__":
    main()
