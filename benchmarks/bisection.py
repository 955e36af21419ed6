"""Benchmark of a bisection against the loop that people write by hand.

    python benchmarks/bisection.py SCRIPT --good BUILD [--bad BUILD] [--channel nightly] [--index-url URL]

The figures are ratios of runs on one machine. The loop is a binary search that trusts the two ends. For each build it
makes a fresh virtual environment, runs ``pip install torch==BUILD``, and reads the script's exit status; a second loop
does so with uv and its cache. torchbisect runs the script on the failing build, searches the same range with an empty
cache, and then again with the cache of that run. Without ``--bad`` the failing build is the one installed, as where
people meet a bug. The bytes are those that the machine receives meanwhile, so nothing else should use its network.
SCRIPT must exit with a status other than 0 where it fails.

A module named ``bisect.py`` would hide that of the standard library from every benchmark in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from packaging.version import Version

from torchbisect.bisect.sources import nightly, release
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import packages, project_page
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.venv.installer import find_uv
from torchbisect.core.build import Build

Install = Callable[[Path, list[str], list[str]], str]
COMMAND = Path(sys.executable).with_name("torchbisect")


@dataclass(frozen=True)
class Cost:
    """The cost and the result of one bisection.

    Attributes:
        seconds: wall time.
        downloaded: bytes that this machine received.
        installs: the number of environments with a torch that were made.
        answer: the two builds between which the answer changes.
    """

    seconds: float
    downloaded: int
    installs: int
    answer: tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("script", type=Path)
    parser.add_argument("--good", required=True)
    parser.add_argument("--bad", help="the failing build (default: the one installed)")
    parser.add_argument("--channel", choices=("release", "nightly"), default="release")
    parser.add_argument("--index-url")
    parser.add_argument("--keep", type=Path, help="leave the last run's results here")
    options = parser.parse_args(arguments)
    url = options.index_url or Indexes.from_configuration().urls[0]
    with tempfile.TemporaryDirectory(prefix="torchbisect-benchmark-") as temporary:
        folder = Path(temporary)
        builds = _builds_between(options, url)
        print(f"{len(builds)} builds from {builds[0]} to {builds[-1]}", flush=True)
        costs: dict[str, Cost] = {}
        for name, install in (("the loop", _install_with_pip), ("the loop, with uv", _install_with_uv)):
            loop = folder / f"loop {len(costs)}"
            costs[name] = _measure(partial(_bisect_by_hand, builds, options, loop, url, install))
            _print_cost(name, costs[name], costs["the loop"])
        for name in ("torchbisect, empty cache", "torchbisect, warm cache"):
            out = folder / name.partition(", ")[2].replace(" ", "-")
            costs[name] = _measure(partial(_bisect_with_torchbisect, options, folder / "cache", out, url))
            _print_cost(name, costs[name], costs["the loop"])
        if options.keep:
            shutil.copytree(out, options.keep, dirs_exist_ok=True)
    return 0 if len({cost.answer for cost in costs.values()}) == 1 else 1


def _builds_between(options: argparse.Namespace, url: str) -> list[Build]:
    """Return the builds between the two ends, oldest first; both bisections search these."""
    interpreter = Interpreter.of(sys.executable)
    if options.channel == "nightly":
        page = project_page(url, "torch")
        listed = nightly.nightlies(page.packages if page else [], interpreter, url.rpartition("/")[2]).builds
    else:
        listed = release.releases(packages(Indexes.from_configuration(url), "torch"), interpreter).builds
    names = [build.name for build in listed]
    bad = options.bad or Version(interpreter.installed_torch or "0").public
    ends = sorted(names.index(end) for end in (options.good, bad))
    return list(listed[ends[0] : ends[1] + 1])


def _measure(bisect: Callable[[], tuple[int, tuple[str, str]]]) -> Cost:
    before, began = psutil.net_io_counters().bytes_recv, time.monotonic()
    installs, answer = bisect()
    return Cost(time.monotonic() - began, psutil.net_io_counters().bytes_recv - before, installs, answer)


def _bisect_by_hand(
    builds: list[Build], options: argparse.Namespace, folder: Path, url: str, install: Install
) -> tuple[int, tuple[str, str]]:
    """Bisect by the exit status alone, as people do by hand; every failure counts as the bug."""
    low, high, installs = 0, len(builds) - 1, 0
    older_fails = builds[0].name != options.good
    others = Indexes.from_configuration().urls if options.channel == "nightly" else ()
    while high - low > 1:
        middle = (low + high) // 2
        python = install(folder, [f"torch=={builds[middle].version}", "numpy"], [url, *others])
        installs += 1
        fails = subprocess.run([python, str(options.script)], capture_output=True, check=False).returncode != 0
        shutil.rmtree(folder)
        low, high = (middle, high) if fails is older_fails else (low, middle)
    return installs, (builds[low].name, builds[high].name)


def _install_with_pip(folder: Path, requirements: list[str], indexes: list[str]) -> str:
    """Make a fresh environment with pip, which keeps what it fetched; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    # A constraint in this machine's configuration may pin torch, so no configuration is read; all indexes are named.
    unpinned = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    where = ["--index-url", indexes[0], *(word for url in indexes[1:] for word in ("--extra-index-url", url))]
    pip = [python, "-m", "pip", "install", "--quiet", "--cache-dir", str(folder.with_name("pip"))]
    subprocess.run([*pip, *requirements, *where], check=True, env=unpinned)
    return python


def _install_with_uv(folder: Path, requirements: list[str], indexes: list[str]) -> str:
    """Make a fresh environment with uv, whose files are links into its cache; return its Python."""
    uv = [find_uv(), "--quiet", "--no-config", "--cache-dir", str(folder.with_name("uv"))]
    subprocess.run([*uv, "venv", "--python", sys.executable, str(folder)], check=True)
    python = str(folder / "bin" / "python")
    where = ["--default-index", indexes[0], *(word for url in indexes[1:] for word in ("--index", url))]
    where += ["--index-strategy", "unsafe-best-match"]
    subprocess.run([*uv, "pip", "install", "--python", python, *requirements, *where], check=True)
    return python


def _bisect_with_torchbisect(
    options: argparse.Namespace, cache: Path, out: Path, url: str
) -> tuple[int, tuple[str, str]]:
    there = set(cache.glob("venvs/*"))
    arguments = ["run" if options.channel == "nightly" else "bisect", str(options.script)]
    arguments += ["--torch", options.bad] if options.bad else []
    arguments += ["--no-minimize"] if options.channel == "nightly" else []
    interpreter = Interpreter.of(sys.executable)
    forwards = options.bad is not None and Version(options.good) > Version(options.bad)
    arguments += ["--good", options.good, "--find", "fix" if forwards else "regression", "--channel", options.channel]
    arguments += ["--index-url", url, "--cache-dir", str(cache), "--out", str(out), "--python", str(interpreter.path)]
    subprocess.run([str(COMMAND), *arguments, "-q"], check=True, stdout=subprocess.DEVNULL, env=_plain_environment())
    found = json.loads((out / "report.json").read_text())["bisect"]["fix" if forwards else "regression"]
    ends = (found["last_bad"], found["first_fixed"]) if forwards else (found["last_good"], found["first_bad"])
    return len(set(cache.glob("venvs/*")) - there), ends


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TORCHBISECT_")}


def _print_cost(name: str, cost: Cost, loop: Cost) -> None:
    times = f"{cost.seconds:7.0f} s ({cost.seconds / loop.seconds:5.2f})"
    size = f"{cost.downloaded / 1e6:8.0f} MB ({cost.downloaded / max(loop.downloaded, 1):5.2f})"
    print(f"{name:26} {times}  {size}  {cost.installs:3} installs  {' → '.join(cost.answer)}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
