"""Measure a night of the watch: many bugs on two builds, and what a kill in the middle costs.

    python benchmarks/watch.py TRIAGE --torch 2.8.0 --torch 2.9.1 [--copies 500] [--workers 2] [--cache-dir DIR]
    python benchmarks/watch.py TRIAGE --python A/bin/python --python B/bin/python [--copies 500]

TRIAGE is the folder of a triage. Its bugs are copied until there are ``--copies`` of them, each with a comment of its
own, so that no answer of one serves another. The first build is asked in one go. On the second the command is killed
when half of the bugs are answered, and given again. Seconds are those of the wall and, because other programs may run
beside, of the processors. Memory is the most that all processes of the command held at once, as the kernel shares it
out among them (PSS). With ``--python`` the builds are those that two Pythons have installed. The last lines are the
plan of one night for ``--bugs`` bugs.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from torchbisect.core.footprint import CPU, CUDA
from torchbisect.triage.database import Database
from torchbisect.triage.ledger.reports import bugs_to_watch
from torchbisect.triage.ledger.store import Ledger, WatchedBug

_SAMPLE_SECONDS = 1.0
COMMAND = str(Path(sys.executable).with_name("torchbisect"))


@dataclass
class Cost:
    """The cost of one command: seconds of wall and processors, and the most bytes held at once."""

    wall: float = 0.0
    processor: float = 0.0
    memory: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("triage", type=Path)
    parser.add_argument("--torch", action="append", help="a build; two are asked")
    parser.add_argument("--python", action="append", help="a Python with a torch, in the place of --torch")
    parser.add_argument("--copies", type=int, default=500)
    parser.add_argument("--bugs", type=int, default=2000, help="the bugs of the plan")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache-dir", type=Path)
    options = parser.parse_args(arguments)
    builds = [("--torch", build) for build in options.torch or ()]
    builds += [("--torch", "installed", "--python", python) for python in options.python or ()]
    first, second = builds
    typed = ["--workers", str(options.workers), *(["--cache-dir", str(options.cache_dir)] if options.cache_dir else [])]
    folder = Path(tempfile.mkdtemp(prefix="torchbisect-watch-"))
    try:
        count = _copy(options.triage, folder, options.copies)
        # The install and the health check are not part of the cost of a bug.
        _watch(folder, first, [*typed, "--budget", "1q"])
        whole = _watch(folder, first, typed)
        print(f"{' '.join(first)}: {count} bugs, {_per_bug(whole, count)}, most memory {whole.memory / 2**30:.2f} GiB")
        _watch(folder, second, [*typed, "--budget", "1q"])
        killed = _watch(folder, second, typed, until=lambda: _answered(folder) >= count + count // 2)
        kept = _answered(folder) - count
        rest = _watch(folder, second, typed)
        whole_count, asked = _answered(folder) - count, _asked_by_last_run(folder)
        print(
            f"{' '.join(second)}: killed with {kept} answers of {count}; then {asked} asked, {whole_count} in the end"
        )
        wall, memory = killed.wall + rest.wall, max(killed.memory, rest.memory)
        print(f"  with the kill {wall / count:.2f} s of wall a bug, most memory {memory / 2**30:.2f} GiB")
        again = _watch(folder, second, typed)
        print(
            f"  the same command once more: {again.wall:.1f} s of wall and {again.processor:.1f} s of processors in all"
        )
        _print_plan(options.bugs, options.workers, whole, count)
    finally:
        shutil.rmtree(folder)
    return 0


def _per_bug(cost: Cost, count: int) -> str:
    return f"{cost.wall / count:.2f} s of wall and {cost.processor / count:.2f} s of processors a bug"


def _print_plan(bugs: int, workers: int, cost: Cost, count: int) -> None:
    """Print what a night costs from the cost of ``count`` bugs, and the sizes of the installs beside it."""
    wall, processor = (bugs * seconds / count / 60 for seconds in (cost.wall, cost.processor))
    print(f"{bugs} bugs in a night: {wall:.0f} min of wall, {processor:.0f} min of processors, {workers} workers")
    for name, size in (("CPU", CPU), ("CUDA", CUDA)):
        download, disk = size.download + size.shared_download, size.installed + size.shared_installed
        print(f"  one install for {name}: {download / 1e9:.1f} GB to download, {disk / 1e9:.1f} GB of disk")
    print("  a night has one install, and a second one, of the last bad build, if a bug seems to be gone")


def _copy(triage: Path, folder: Path, most: int) -> int:
    """Fill a new ledger with copies of the bugs of a triage, and return their number."""
    with Database(triage / "triage.sqlite") as database:
        found = bugs_to_watch(triage, database.rows(), (), "2026-01-01", print)
    copies = [_copied(found[number % len(found)], number) for number in range(most)]
    with Database(folder / "triage.sqlite") as database:
        Ledger(database).put_bugs(copies)
    return len(copies)


def _copied(one: WatchedBug, number: int) -> WatchedBug:
    scripts = tuple(replace(script, source=f"{script.source}\n# copy {number}\n") for script in one.bug.scripts)
    return replace(one, bug=replace(one.bug, name=f"{one.bug.name} {number}", scripts=scripts))


def _answered(folder: Path) -> int:
    with Database(folder / "triage.sqlite") as database:
        return len(Ledger(database).answers())


def _asked_by_last_run(folder: Path) -> int:
    with Database(folder / "triage.sqlite") as database:
        return Ledger(database).runs()[-1].asked


def _watch(folder: Path, build: Sequence[str], typed: Sequence[str], until: Callable[[], bool] | None = None) -> Cost:
    """Run the command to its end, or kill it as soon as ``until`` is true."""
    cost, began, before = Cost(), time.monotonic(), _processor_seconds()
    process = subprocess.Popen(
        [COMMAND, "watch", "-q", *typed, *build, str(folder)],
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(process.pid, cost, over))
    sampler.start()
    while process.poll() is None:
        time.sleep(_SAMPLE_SECONDS / 4)
        if until is not None and until():
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            break
    over.set()
    sampler.join()
    cost.wall, cost.processor = time.monotonic() - began, _processor_seconds() - before
    if until is None and process.returncode not in (0, 3):
        raise SystemExit(f"torchbisect watch ended with {process.returncode}")
    return cost


def _processor_seconds() -> float:
    """Return the processor seconds of all processes below this one that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _sample(pid: int, cost: Cost, over: threading.Event) -> None:
    while not over.wait(_SAMPLE_SECONDS):
        held = 0
        try:
            for process in (found := psutil.Process(pid), *found.children(recursive=True)):
                try:
                    held += process.memory_full_info().pss
                except psutil.Error:
                    continue
        except psutil.Error:
            continue
        cost.memory = max(cost.memory, held)


if __name__ == "__main__":
    sys.exit(main())
