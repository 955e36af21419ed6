"""Measure small benchmarks on many releases beside the oldest of them; print a table of ratios to it.

    python benchmarks/release_costs.py 2.1.2 2.2.2 2.3.1 [--only NAME ...] [--cores N] [--journal FILE]
        [--cache-dir DIR] [--cache-limit SIZE]

The scripts are those of ``benchmarks/measured``. Each is run on both releases in turns: first with nothing compiled
before, which gives the compile time, the kernels and the memory, then in forks of one process that call ``benchmark()``
in turns with the other release. A figure is the median of the ratios of the pairs. With ``--cores`` so many scripts are
measured at once, each on a core of its own with both of its releases. FILE keeps the results, so that the same command
goes on after a stop.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import platformdirs

from torchbisect.containers.environment import Environment
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import parse_size
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro
from torchbisect.probe.measure.comparison import Reading
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.measure.measured_runs import MeasuredRuns
from torchbisect.probe.measure.paired_test import Ratio, ratio_of
from torchbisect.probe.measure.turns import in_turns

SCRIPTS = Path(__file__).parent / "measured"
MEASURES = ("time", "compile-time", "memory", "kernel-count", "graph-breaks")
TIMEOUT = 900.0
#: A change of the time, the compile time or the memory that stands out.
STANDS_OUT = 1.2


@dataclass(frozen=True)
class Row:
    """The figures of one script on one release.

    Attributes:
        ratios: the median ratio to the oldest release and the ends of its interval, by the name of the measure.
        counts: a count on the oldest release and on this one, by its name.
        failure: why there are no figures; empty if there are.
    """

    script: str
    torch: str
    against: str
    ratios: dict[str, tuple[float, float, float]]
    counts: dict[str, tuple[float, float]]
    failure: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("releases", nargs="+", help="the oldest first")
    parser.add_argument("--only", nargs="*", help="names of scripts")
    parser.add_argument("--cold", type=int, default=2, help="pairs of runs with nothing compiled before")
    parser.add_argument("--warm", type=int, default=7, help="pairs of runs that are timed")
    parser.add_argument("--cores", type=int, default=1, help="the last ones; a script is measured on each")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--cache-dir", type=Path, default=Path(platformdirs.user_cache_dir("torchbisect")))
    parser.add_argument("--cache-limit", type=parse_size, help="as the command's own")
    options = parser.parse_args(arguments)
    scripts = [path for path in sorted(SCRIPTS.glob("*.py")) if not options.only or path.stem in options.only]
    journal = options.journal
    rows = (
        [Row(**json.loads(line)) for line in journal.read_text().splitlines()] if journal and journal.exists() else []
    )
    cache = Cache(options.cache_dir, limit=options.cache_limit)
    venvs = VenvEnvironments(cache, Interpreter.of(Path(sys.executable)), Indexes.from_configuration())
    oldest, *others = options.releases
    with closing(venvs):
        done = {(row.script, row.torch, row.against) for row in rows}
        for release in others:
            missing = [script for script in scripts if (script.stem, release, oldest) not in done]
            if not missing:
                continue
            first, second = (venvs.environment(Build(version, Channel.RELEASE)) for version in (oldest, release))
            measure = partial(_measured, oldest=first, newer=second, cold=options.cold, warm=options.warm)
            for row in _on_cores(options.cores, measure, missing):
                rows.append(row)
                print(json.dumps(asdict(row)), file=sys.stderr, flush=True)
                if journal is not None:
                    with journal.open("a") as file:
                        file.write(json.dumps(asdict(row)) + "\n")
    for measure in MEASURES:
        print("\n".join(_table(measure, [script.stem for script in scripts], others, rows)))
    return 0


def _on_cores(count: int, measure: Callable[[Path], Row], scripts: Iterable[Path]) -> Iterator[Row]:
    """Yield the row of each script as it is done. Each thread, and what it starts, keeps to one of the last cores."""
    if count == 1:  # measured runs keep to the last one by themselves
        yield from map(measure, scripts)
        return
    cores = iter(sorted(os.sched_getaffinity(0))[-count:])
    with ThreadPoolExecutor(count, initializer=lambda: os.sched_setaffinity(0, {next(cores)})) as threads:
        try:
            for future in as_completed([threads.submit(measure, script) for script in scripts]):
                yield future.result()
        finally:
            threads.shutdown(cancel_futures=True)


def _measured(script: Path, oldest: Environment, newer: Environment, cold: int, warm: int) -> Row:
    """Run a script on both releases; the first run of each only shows what to import before the others."""
    repro, measure = Repro(script.read_text(), name=script.name), Measure.parsed("time")
    made = partial(Row, script.stem, newer.build.name, oldest.build.name)
    first, second = (MeasuredRuns(one, measure, timeout=TIMEOUT) for one in (oldest, newer))
    with closing(first), closing(second):
        for runs in (first, second):
            runs.run(repro, True)
        unwarmed = [(first.run(repro, True), second.run(repro, True)) for _ in range(cold)]
        for reading in (one for pair in unwarmed for one in pair):
            if reading.failure:
                return made({}, {}, f"{reading.failure}: {reading.detail}")
        timed = [in_turns(partial(first.run, repro, False), partial(second.run, repro, False)) for _ in range(warm)]
    found = {"time": _ratio("time", timed), "memory": _ratio("memory", timed)}
    found["compile-time"] = _ratio("compile-time", unwarmed)
    ratios = {name: (one.value, one.low, one.high) for name, one in found.items() if one is not None}
    before, after = (reading.values for reading in unwarmed[0])
    names = [name for name in ("kernel-count", "graph-breaks") if name in before and name in after]
    return made(ratios, {name: (before[name], after[name]) for name in names})


def _ratio(name: str, pairs: Iterable[tuple[Reading, Reading]]) -> Ratio | None:
    """Return the ratio of the newer release to the oldest one; ``None`` if a run has no such figure."""
    values = [(one.values.get(name), other.values.get(name)) for one, other in pairs]
    ratios = [ratio_of(after, before) for before, after in values if before is not None and after is not None]
    return Ratio.of(ratios) if ratios and len(ratios) == len(values) else None


def _table(measure: str, scripts: Sequence[str], releases: Sequence[str], rows: Sequence[Row]) -> Iterable[str]:
    """Yield the lines of the table of one measure; what stands out is bold."""
    found = {(row.script, row.torch): row for row in rows}
    yield f"\n{measure}\n"
    yield f"| | {' | '.join(releases)} |"
    yield "|---" * (len(releases) + 1) + "|"
    for script in scripts:
        cells = [_cell(measure, found.get((script, release))) for release in releases]
        if any(cells):
            yield f"| `{script}` | {' | '.join(cells)} |"


def _cell(measure: str, row: Row | None) -> str:
    if row is None:
        return ""
    if row.failure:
        return row.failure.partition(":")[0]
    if measure in row.counts:
        before, after = row.counts[measure]
        return f"{after:g}" if after == before else f"**{before:g} to {after:g}**"
    if measure not in row.ratios:
        return ""
    value, low, high = row.ratios[measure]
    text = f"{value:.2f}"
    return f"**{text}**" if low > STANDS_OUT or high < 1 / STANDS_OUT else text


if __name__ == "__main__":
    raise SystemExit(main())
