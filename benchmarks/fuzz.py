"""Try the parsers of bytes from outside with spoiled texts, for as long as one likes.

    python benchmarks/fuzz.py [--seconds 60] [--seed N] [PARSER ...]

Prints a row for each parser of ``tests/support/outside_parsers.py``: texts tried, texts a second, the slowest text in
milliseconds, and failures. A failure is an error that the parser may not raise, shown with the smallest text for it.
The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from outside_parsers import PARSERS, Parser

ROUND = 200
_SETTINGS = settings(
    max_examples=ROUND, deadline=None, database=None, print_blob=False, suppress_health_check=list(HealthCheck)
)


@dataclass
class Tried:
    """What was seen of one parser; ``failures`` has the traceback of each kind of failure."""

    count: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_text: Any = ""
    failures: dict[str, str] = field(default_factory=dict)


def try_once(parser: Parser, tried: Tried, number: int) -> None:
    """Try ``ROUND`` texts, fewer if one fails; the smallest text that fails is kept."""

    @_SETTINGS
    @seed(number)
    @given(parser.texts)
    def attempt(text: Any) -> None:
        before = time.process_time()
        try:
            with contextlib.suppress(*parser.errors):
                parser.parse(text)
        finally:
            took = time.process_time() - before
            tried.count += 1
            if took > tried.slowest:
                tried.slowest, tried.slowest_text = took, text

    try:
        attempt()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        tried.failures.setdefault(f"{type(error).__name__} in {last.name}", "".join(traceback.format_exception(error)))


def main() -> int:
    """Try the parsers in turn until the time is up, and print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("parsers", nargs="*", metavar="PARSER", help=", ".join(PARSERS))
    given = options.parse_args()
    if unknown := set(given.parsers) - set(PARSERS):
        options.error(f"no such parser: {', '.join(sorted(unknown))}")
    numbers = random.Random(given.seed)
    found = {name: Tried() for name in given.parsers or PARSERS}
    until = time.monotonic() + given.seconds
    while time.monotonic() < until:
        for name, tried in found.items():
            before = time.monotonic()
            try_once(PARSERS[name], tried, numbers.getrandbits(64))
            tried.seconds += time.monotonic() - before
            if time.monotonic() > until:
                break
    print(f"{'parser':18} {'texts':>8} {'a second':>9} {'slowest ms':>11} {'failures':>9}")
    for name, tried in found.items():
        rate = tried.count / tried.seconds if tried.seconds else 0.0
        print(f"{name:18} {tried.count:8} {rate:9.0f} {tried.slowest * 1000:11.1f} {len(tried.failures):9}")
    slowest = max(found, key=lambda name: found[name].slowest)
    print(f"slowest: {slowest}: {found[slowest].slowest_text!r:.300}")
    for name, tried in found.items():
        for kind, text in tried.failures.items():
            print(f"\n{name}: {kind}\n{text}")
    return any(tried.failures for tried in found.values())


if __name__ == "__main__":
    sys.exit(main())
