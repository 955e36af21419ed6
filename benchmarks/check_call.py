"""Measure what ``torchbisect.api.check`` takes beside the two calls that it compares, made by hand.

    python benchmarks/check_call.py --pairs 5

By hand, a model is called compiled, with nothing compiled before, and uncompiled, each with a backward, and the outputs
and gradients are compared by ``torch.testing.assert_close``. Both ways run in turns in one process, and the ratio is
that of the processor times of each pair, with those of child processes. The compiler's caches on disk are off.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from torchbisect.api import CheckOptions, check_module


def by_hand(model: torch.nn.Module, inputs: torch.Tensor, backend: str) -> None:
    """Compare the compiled model with the plain one."""
    torch._dynamo.reset()
    compiled, plain = copy.deepcopy(model), copy.deepcopy(model)
    outputs = torch.compile(compiled, backend=backend)(inputs), plain(inputs)
    for output in outputs:
        output.sum().backward()
    torch.testing.assert_close(*outputs)
    for one, other in zip(compiled.parameters(), plain.parameters()):
        torch.testing.assert_close(one.grad, other.grad)


def processor_seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call, with that of child processes."""
    began = os.times()
    call()
    return sum(os.times()[:4]) - sum(began[:4])


def pair(model: torch.nn.Module, inputs: torch.Tensor, backend: str) -> float:
    """Compare both ways once, print their times, and return their ratio."""
    with tempfile.TemporaryDirectory() as name, torch._inductor.config.patch(force_disable_caches=True):
        options = CheckOptions(compile={"backend": backend}, out=Path(name))
        plain = processor_seconds(lambda: by_hand(model, inputs, backend))
        checked = processor_seconds(lambda: check_module(model, inputs, torchbisect=options))
    print(f"{backend}: by hand {plain:.2f} s, check {checked:.2f} s, ratio {checked / plain:.2f}")
    return checked / plain


def main() -> None:
    """Run the pairs and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    given = parser.parse_args()
    torch.set_num_threads(1)
    layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(given.layers)]
    model, inputs = torch.nn.Sequential(*layers), torch.randn(16, 64)
    for backend in ("aot_eager", "inductor"):
        pair(model, inputs, backend)  # imports the compiler
        ratios = [pair(model, inputs, backend) for _ in range(given.pairs)]
        print(f"{backend}: median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
