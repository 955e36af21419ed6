"""Record the lines of a command through a pipe, and print its longest silences with the lines around them.

    python benchmarks/silence.py [--longest 10] [--show 3] -- torchbisect check repro.py

Time counts from the start of the process. The status is 1 if a silence was longer than ``--longest`` seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Silence:
    """The seconds between two lines; the first of all begins with the process, and the last ends with it."""

    seconds: float
    before: str
    after: str


def silences(command: list[str]) -> tuple[list[Silence], int]:
    """Run a command, and return its silences, the longest first, and its exit status."""
    began = time.monotonic()
    found: list[Silence] = []
    before = "(start of the process)"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            now = time.monotonic()
            found.append(Silence(now - began, before, line.rstrip()))
            began, before = now, line.rstrip()
    found.append(Silence(time.monotonic() - began, before, "(end of the process)"))
    return sorted(found, key=lambda silence: -silence.seconds), run.returncode


def main() -> int:
    """Print the silences of the command that was typed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--show", type=int, default=3, metavar="N")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("name the command to record")
    found, status = silences(command)
    for silence in found[: given.show]:
        print(f"{silence.seconds:6.1f} s  after   {silence.before[:110]}\n          before  {silence.after[:110]}")
    print(f"exit {status}, {len(found) - 1} lines")
    return int(found[0].seconds > given.longest)


if __name__ == "__main__":
    sys.exit(main())
