"""The cost of a run of the installed torch, as the file that is sent to an environment measures it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchbisect.probe.agent.run import compile_metrics

pytestmark = [pytest.mark.torch, pytest.mark.long]

TOOL = Path(compile_metrics.__file__).with_name("measured_run.py")
COMPILED = """
import torch


@torch.compile(backend="aot_eager")
def chain(x):
    print("a graph break")
    return torch.sin(x) * x


for size in (4, 4, 4, 4, 4):
    chain(torch.ones(size))
chain(torch.ones(4, dtype=torch.float64))
"""
EAGER = """
import sys, torch


def benchmark():
    torch.ones(8).sum()


assert "torch._dynamo" not in sys.modules, "an eager script pays for no compiler"
"""


def measure(folder: Path, source: str) -> dict[str, Any]:
    """Run a script by the tool and return what it printed last."""
    script = folder / "bench.py"
    script.write_text(source)
    plan = json.dumps({"mark": "measured:", "core": None, "seed": 0})
    done = subprocess.run(
        [sys.executable, TOOL, plan, script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stderr.strip().splitlines()[-1].removeprefix("measured:"))
    return found


def test_a_compiled_script(tmp_path: Path) -> None:
    """Its calls are timed without those that compile; graph breaks and recompiles are counted."""
    found = measure(tmp_path, COMPILED)
    values = found["values"]
    assert found["timed"] == "the fastest call of each compiled function after warm-up"
    assert 0 < values["time"] < values["compile-time"]
    assert values["graph-breaks"] >= 1
    assert values["recompiles"] >= 1


def test_an_eager_script(tmp_path: Path) -> None:
    """``benchmark`` is timed, and the compiler is never imported."""
    found = measure(tmp_path, EAGER)
    assert found["timed"] == "the fastest call of benchmark() after warm-up"
    assert found["values"]["time"] > 0
    assert {"compile-time", "kernel-count", "graph-breaks"}.isdisjoint(found["values"])
