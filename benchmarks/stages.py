"""Measure ``torchbisect check`` beside plain ``python`` for the same script, in one run, as ratios.

    python benchmarks/stages.py [--torch 2.8.0] [--cache-dir DIR] [--rounds 3] [--minimize SCRIPT ...]

Two scripts of one compiled function: one with inductor, one with the eager backend. Plain Python has an empty compiler
cache each time. ``check`` is run with an empty folder of results, first with nothing known about the compiler of this
machine and then again. Rounds are interleaved, and the medians are compared. The profile of the last run follows.

With ``--minimize`` it prints instead, for each script, the seconds in which ``torchbisect minimize`` shrank it, the
seconds of everything else, and the number of runs under plain Python.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbisect.containers.environment import Venv
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.search_scope import failing_build

SCRIPTS = {
    "inductor": """\
import torch

def f(x):
    return x * 0

y = torch.compile(f)(torch.full((4,), float("nan")))
assert y.isnan().all(), y
""",
    "eager": """\
import torch

@torch.compile(backend="eager")
def f(x):
    y = torch.zeros(1, 1, 1)
    y[:, [0], [0]] = x
    return y.requires_grad

assert f(torch.ones(1, requires_grad=True))
""",
}


@dataclass(frozen=True)
class Measured:
    """Seconds of one command until its first result and until its end, what it printed, and its report."""

    first: float
    whole: float
    text: str
    report: dict[str, Any]


def plain(environment: Venv, script: Path) -> float:
    """Return the seconds of a run under plain Python with empty compiler caches."""
    with tempfile.TemporaryDirectory() as folder:
        extra = {"TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        return environment.run([str(script)], timeout=600, extra=extra).seconds


def profiled(name: str, options: argparse.Namespace, script: Path) -> Measured:
    """Run a command with ``--profile`` and an empty folder of results."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-c", "from torchbisect.cli.main import main; main()", name]
        command += ["--torch", options.torch, "--out", f"{out}/out", "--profile"]
        command += ["--cache-dir", str(options.cache_dir)] if options.cache_dir else []
        command.append(str(script))  # last: what follows a script may be its own
        began, first, lines = time.monotonic(), 0.0, []
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if not first and line.startswith(("  compiled", "torchbisect:")):
                first = time.monotonic() - began
        process.wait()
        whole = time.monotonic() - began
        report = json.loads(Path(out, "out", "report.json").read_text(encoding="utf-8"))
        return Measured(first or whole, whole, "".join(lines), report)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default="2.8.0")
    parser.add_argument("--cache-dir", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minimize", type=Path, nargs="+", metavar="SCRIPT")
    options = parser.parse_args()
    if options.minimize:
        print_minimize(options)
        return
    print(f"torch {options.torch}, {platform.processor() or platform.machine()}, {options.rounds} rounds")
    print(f"{'script':10}{'plain':>10}{'first line, cold':>18}{'whole, cold':>13}{'first line':>12}{'whole':>8}")
    with tempfile.TemporaryDirectory() as folder:
        asked = Options(Path(), torch=options.torch, cache_dir=options.cache_dir)
        provider = LocalProvider(asked, Display(-1))
        with provider.environment(failing_build(asked, provider.sources)) as environment:
            assert isinstance(environment, Venv)
            for name, text in SCRIPTS.items():
                script = Path(folder, f"{name}.py")
                script.write_text(text, encoding="utf-8")
                measure(name, script, environment, options)
        provider.close()


def print_minimize(options: argparse.Namespace) -> None:
    """Print how the time of ``torchbisect minimize`` divides, a line for each script."""
    print(f"torch {options.torch}, {platform.processor() or platform.machine()}")
    print(f"{'script':24}{'shrinking':>12}{'the rest':>12}{'plain runs':>12}")
    for script in options.minimize:
        run = profiled("minimize", options, script)
        minimal = run.report["minimal"]
        rest, runs = run.whole - minimal["seconds"], len(minimal["confirmed"])
        print(f"{script.stem:24}{minimal['seconds']:10.1f} s{rest:10.1f} s{runs:12}", flush=True)


def measure(name: str, script: Path, environment: Venv, options: argparse.Namespace) -> None:
    """Print the medians of one script as ratios to plain Python, and the last profile."""
    plains, colds, warms = [], [], []
    for _ in range(options.rounds):
        plains.append(plain(environment, script))
        shutil.rmtree(environment.compiler_cache or "", ignore_errors=True)
        colds.append(profiled("check", options, script))
        warms.append(profiled("check", options, script))
    unit = statistics.median(plains)
    cells = []
    for runs in (colds, warms):
        cells += [
            statistics.median(run.first for run in runs) / unit,
            statistics.median(run.whole for run in runs) / unit,
        ]
    print(f"{name:10}{unit:8.1f} s{cells[0]:18.2f}{cells[1]:13.2f}{cells[2]:12.2f}{cells[3]:8.2f}")
    print(warms[-1].text)


if __name__ == "__main__":
    main()
