"""Benchmark of ``torchbisect bisect --measure`` over nightlies of real torch in which steps are planted.

    python benchmarks/planted_steps.py [--searches 20] [--dates 16] [--journal FILE]

Three searches in turn share an index, made of the installed torch, where three numbers become worse, each at a date
drawn by the number of the search: a slowdown, a slow pass, and a copy that is kept. Builds before a step are the
reference build under another date, so each comparison of one is A against A. A process of this benchmark keeps the
first core busy on purpose. Measured runs are pinned to the last one, so of two cores none is left.

The installs of a correctness search are those of the same search with exact answers. FILE keeps the results, so that
the same command goes on after a stop.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from nightly_index import LATEST, NightlyIndex
from planted_steps import STEPS

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions

COMMAND = Path(sys.executable).with_name("torchbisect")


@dataclass(frozen=True)
class Search:
    """The result of one search.

    Attributes:
        number: the number of the search.
        step: the name of the planted step.
        right: the search named the last date without it and the first one with it.
        installs: the builds that it needed.
        correctness_installs: those that a correctness search over the same dates needs.
        same: the answers about builds that are the reference build under some date, with a reason if there is one.
        pairs: the pairs of runs of each comparison.
        ratios: the ratio of each build with the step.
        seconds: the wall time, with the installs that no earlier search made.
        said: the end of standard error, if the search was wrong.
    """

    number: int
    step: str
    right: bool
    installs: int
    correctness_installs: int
    same: list[str]
    pairs: list[int]
    ratios: list[float]
    seconds: float
    said: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--dates", type=int, default=16)
    parser.add_argument("--journal", type=Path)
    options = parser.parse_args(arguments)
    done = _kept(options.journal)
    with tempfile.TemporaryDirectory(prefix="torchbisect-steps-") as temporary, _load():
        for number in range(options.searches):
            if number in {one.number for one in done}:
                continue
            done.append(_search(number, options.dates, Path(temporary)))
            line = json.dumps(asdict(done[-1]))
            print(line, flush=True)
            if options.journal:
                with options.journal.open("a") as file:
                    file.write(line + "\n")
    _print(done)
    return 0 if all(one.right for one in done) else 1


def _kept(journal: Path | None) -> list[Search]:
    if journal is None or not journal.exists():
        return []
    return [Search(**json.loads(line)) for line in journal.read_text().splitlines()]


def _search(number: int, dates: int, folder: Path) -> Search:
    """Find the step of a search."""
    names = list(STEPS)
    turn, first = number // len(names), number - number % len(names)
    culprits = {name: random.Random(first + position).randrange(1, dates) for position, name in enumerate(names)}
    name = names[number % len(names)]
    step, culprit = STEPS[name], culprits[name]
    # Other dates in each turn, as what was installed once keeps its content.
    latest = LATEST - datetime.timedelta(days=turn * dates)
    changes = {STEPS[one].change: (culprits[one], dates) for one in names}
    index = NightlyIndex(count=dates, changes=changes, roll=dates, latest=latest)
    days = [index.date(position).isoformat() for position in range(dates)]
    where = ["--channel", "nightly", "--index-url", index.start(), "--find", "regression", "--torch", days[-1]]
    measuring = ["--against", days[0], "--measure", step.measure, "--worse-by", step.worse_by]
    begun = time.monotonic()
    try:
        done = _bisect(folder, number, [*where, *measuring], step.script)
    finally:
        index.stop()
    report: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        report = json.loads((folder / f"out-{number}/report.json").read_text())
    found = (report.get("bisect") or {}).get("regression") or {}
    builds = [index.version(position).partition("+")[0] for position in range(dates)]
    rows = (report.get("measurement") or {}).get("builds", [])
    right = (
        done.returncode == 0 and [found.get("last_good"), found.get("first_bad")] == builds[culprit - 1 : culprit + 1]
    )
    before = builds[:culprit]
    said = f"status {done.returncode}, {found.get('last_good')} to {found.get('first_bad')}: {done.stderr[-1500:]}"
    return Search(
        number,
        name,
        right,
        len({row["build"] for row in rows}),
        _correctness_installs(index, culprit),
        [row["answer"] + (f": {row['reason']}" if row.get("reason") else "") for row in rows if row["build"] in before],
        [row["pairs"] for row in rows],
        [round(row["ratio"], 3) for row in rows if row["build"] not in before and row.get("ratio")],
        round(time.monotonic() - begun, 1),
        "" if right else said,
    )


def _bisect(folder: Path, number: int, words: list[str], script: str) -> subprocess.CompletedProcess[str]:
    """Run the command; searches over one index share its cache."""
    (folder / "bench.py").write_text(script)
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("TORCHBISECT_", "PYTHONDONT"))}
    cache = ["--cache-dir", str(folder / "cache"), "--cache-limit", "6GB", "--out", f"out-{number}"]
    return subprocess.run(
        [COMMAND, "bisect", *words, *cache, "bench.py"],
        cwd=folder,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )


def _correctness_installs(index: NightlyIndex, culprit: int) -> int:
    """Return the number of builds that the same search asks if each answer is exact."""

    def ask(position: int) -> BuildAnswer:
        return BuildAnswer(BuildStatus.BAD if position >= culprit else BuildStatus.GOOD)

    options = SearchOptions[int](
        bad=index.count - 1,
        good=0,
        kind=BoundaryKind.REGRESSION,
        rank=lambda position: index.date(position).toordinal(),
        recheck="good",
    )
    return len({asked.item for asked in find_boundaries(range(index.count), ask, options).tested})


@contextlib.contextmanager
def _load() -> Iterator[None]:
    """Keep the first core busy, now more and now less, with work that needs the memory too."""
    process = multiprocessing.get_context("spawn").Process(target=_work, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()


def _work() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    chance, data, parent = random.Random(0), bytearray(64 << 20), os.getppid()
    while os.getppid() == parent:
        until = time.monotonic() + chance.uniform(0.2, 3)
        while time.monotonic() < until:
            data[:] = bytes(data)
        time.sleep(chance.uniform(0, 1))


def _print(done: Sequence[Search]) -> None:
    """Print a table of all searches by step, and what A against A gave."""
    print("| step | right | most installs by those of a correctness search | ratio found | pairs a build |")
    print("|---|---|---|---|---|")
    for name in dict.fromkeys(one.step for one in done):
        rows = [one for one in done if one.step == name]
        share = max(one.installs / max(one.correctness_installs, 1) for one in rows)
        ratios = [ratio for one in rows for ratio in one.ratios]
        pairs = [count for one in rows for count in one.pairs]
        between = f"{min(ratios, default=0):.2f} to {max(ratios, default=0):.2f}"
        right = f"{sum(one.right for one in rows)} of {len(rows)}"
        print(f"| {name} | {right} | {share:.2f} | {between} | {min(pairs, default=0)} to {max(pairs, default=0)} |")
    same = [answer for one in done for answer in one.same]
    refused = sum(answer.startswith("untestable") for answer in same)
    equal = same.count("not-worse")
    print(f"\nA against A: {equal} not worse, {refused} refused, {same.count('worse')} worse, of {len(same)}")


if __name__ == "__main__":
    raise SystemExit(main())
