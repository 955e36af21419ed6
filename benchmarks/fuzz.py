"""Try the parsers of bytes from outside with spoiled texts, for as long as one likes.

    python benchmarks/fuzz.py [--seconds 60] [--processes 1] [--seed N] [--keep FILE] [PARSER ...]

The parsers of ``tests/support/outside_parsers.py`` are dealt out to the processes, which run side by side until the
time is up. Prints a row for each parser: texts tried, processor seconds, texts a second of those, the slowest text in
milliseconds, and failures. A failure is an error that the parser may not raise, or a text that takes more than
two seconds. The shortest text of each is a line of ``--keep``; a line in ``tests/fuzz/found.jsonl`` is tried by every
``make test``. The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import random
import shutil
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from outside_parsers import PARSERS, SECONDS, Parser, folder

ROUND = 50
_SETTINGS = settings(
    max_examples=ROUND, deadline=None, database=None, print_blob=False, suppress_health_check=list(HealthCheck)
)


@dataclass(frozen=True)
class Failure:
    """A text that a parser does not hold, and what happened."""

    text: Any
    said: str


@dataclass
class Tried:
    """The results of one parser; ``failures`` has the shortest text of each kind of failure."""

    count: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_text: Any = ""
    failures: dict[str, Failure] = field(default_factory=dict)

    def fails(self, kind: str, text: Any, said: str) -> None:
        """Keep the text of a failure if it is the shortest of its kind."""
        kept = self.failures.get(kind)
        if kept is None or len(repr(text)) < len(repr(kept.text)):
            self.failures[kind] = Failure(text, said)


class _TooSlow(Exception):
    """A text took more processor time than it may."""


def try_round(parser: Parser, tried: Tried, number: int) -> None:
    """Try ``ROUND`` texts, and shorter ones if one fails."""

    @_SETTINGS
    @seed(number)
    @given(parser.texts)
    def attempt(text: Any) -> None:
        before = time.process_time()
        try:
            with contextlib.suppress(*parser.errors):
                parser.parse(text)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            tried.fails(f"{type(error).__name__} in {last.name}", text, "".join(traceback.format_exception(error)))
            raise
        finally:
            took = time.process_time() - before
            tried.count += 1
            if took > tried.slowest:
                tried.slowest, tried.slowest_text = took, text
        if took > SECONDS:
            tried.fails("slow", text, f"{took:.1f} s of processor time\n")
            raise _TooSlow

    # What failed is kept by ``attempt``; Hypothesis says the same again, or that it did not fail twice.
    with contextlib.suppress(Exception):
        attempt()


def try_parsers(names: list[str], until: float, number: int) -> dict[str, Tried]:
    """Try these parsers in turn until the time is up."""
    numbers = random.Random(number)
    found = {name: Tried() for name in names}
    try:
        while time.monotonic() < until:
            for name, tried in found.items():
                before = time.process_time()
                try_round(PARSERS[name], tried, numbers.getrandbits(64))
                tried.seconds += time.process_time() - before
                if time.monotonic() > until:
                    break
    finally:
        shutil.rmtree(folder(), ignore_errors=True)
    return found


def show(found: dict[str, Tried]) -> None:
    """Print the table, the slowest text and each failure."""
    print(f"{'parser':18} {'texts':>9} {'CPU s':>8} {'a second':>9} {'slowest ms':>11} {'failures':>9}")
    for name, tried in found.items():
        rate = tried.count / tried.seconds if tried.seconds else 0.0
        cells = f"{tried.count:9} {tried.seconds:8.1f} {rate:9.0f} {tried.slowest * 1000:11.1f}"
        print(f"{name:18} {cells} {len(tried.failures):9}")
    count, seconds = sum(one.count for one in found.values()), sum(one.seconds for one in found.values())
    print(f"{'all':18} {count:9} {seconds:8.1f}")
    slowest = max(found, key=lambda name: found[name].slowest)
    print(f"slowest: {slowest}: {found[slowest].slowest_text!r:.300}")
    for name, tried in found.items():
        for kind, failure in tried.failures.items():
            print(f"\n{name}: {kind}: {failure.text!r:.2000}\n{failure.said}")


def main() -> int:
    """Try the parsers, print the table and keep what was found."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--keep", type=Path, help="a file of JSON lines that the failures are added to")
    options.add_argument("parsers", nargs="*", metavar="PARSER", help=", ".join(PARSERS))
    given = options.parse_args()
    if unknown := set(given.parsers) - set(PARSERS):
        options.error(f"no such parser: {', '.join(sorted(unknown))}")
    names = given.parsers or list(PARSERS)
    numbers = random.Random(given.seed)
    until = time.monotonic() + given.seconds
    shares = [share for start in range(max(1, given.processes)) if (share := names[start :: max(1, given.processes)])]
    # A fork has what is imported, and the clock of its parent.
    with ProcessPoolExecutor(len(shares), multiprocessing.get_context("fork")) as pool:
        running = [pool.submit(try_parsers, share, until, numbers.getrandbits(64)) for share in shares]
        tried = {name: one for share in running for name, one in share.result().items()}
    found = {name: tried[name] for name in names}
    show(found)
    failures = [(name, kind, one.text) for name, each in found.items() for kind, one in each.failures.items()]
    if given.keep and failures:
        with given.keep.open("a", encoding="ascii") as file:
            for name, kind, text in failures:
                file.write(json.dumps({"parser": name, "kind": kind, "text": text}) + "\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
