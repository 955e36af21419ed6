"""Measure what ``pytest --torchbisect`` adds to a suite in which every test compiles something.

    python benchmarks/pytest_plugin.py --tests 200 --pairs 3

The suite is run with the plugin and without it in turns, and the ratio is that of the processor times of each pair. The
backends are the cheap ones, ``eager`` and ``aot_eager``: with inductor compiling takes more of a test, and the ratio
falls.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_TEST = """
def test_{number}():
    torch._dynamo.reset()
    net = torch.nn.Sequential(torch.nn.Linear({width}, {width}), torch.nn.{layer}())
    compiled = torch.compile(net, backend={backend!r})
    output = compiled(torch.randn(8, {width}))
    output.square().mean().backward()
    assert net[0].weight.grad is not None
    assert output.shape == (8, {width})
"""
_LAYERS = ("ReLU", "Tanh", "GELU", "Sigmoid", "SiLU")
_BACKENDS = ("eager", "aot_eager")


def suite(tests: int) -> str:
    """Return the text of a test module with so many tests."""
    parts = ["import torch\n"]
    for number in range(tests):
        layer, backend = _LAYERS[number % len(_LAYERS)], _BACKENDS[number % len(_BACKENDS)]
        parts.append(_TEST.format(number=number, width=16 + number % 64, layer=layer, backend=backend))
    return "\n".join(parts)


def processor_seconds(folder: Path, *options: str) -> float:
    """Run the suite and return the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the pairs and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_suite.py").write_text(suite(given.tests), encoding="utf-8")
        for _ in range(given.pairs):
            plain = processor_seconds(folder)
            compared = processor_seconds(folder, "--torchbisect")
            ratios.append(compared / plain)
            print(f"{given.tests} tests: {plain:.1f} s, with --torchbisect {compared:.1f} s, ratio {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
