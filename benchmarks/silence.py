"""Record what a command writes, and print its longest silences with the lines around them.

    python benchmarks/silence.py [--longest 10] [--show 3] [--terminal] -- torchbisect check repro.py

Lines are recorded through a pipe; with ``--terminal``, everything that is drawn on one. Time counts from the start of
the process. The status is 1 if a silence was longer than ``--longest`` seconds.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Silence:
    """The seconds between two lines; the first of all begins with the process, and the last ends with it."""

    seconds: float
    before: str
    after: str


def silences(command: list[str], *, terminal: bool = False) -> tuple[list[Silence], int]:
    """Run a command, and return its silences, the longest first, and its exit status."""
    began = time.monotonic()
    found: list[Silence] = []
    before = "(start of the process)"
    here, there = pty.openpty() if terminal else os.pipe()
    words = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"} if terminal else None
    run = subprocess.Popen(command, stdout=there, stderr=subprocess.STDOUT, env=words)
    os.close(there)
    for text in _pieces(here) if terminal else _lines(here):
        now = time.monotonic()
        found.append(Silence(now - began, before, text))
        began, before = now, text
    status = run.wait()
    found.append(Silence(time.monotonic() - began, before, "(end of the process)"))
    return sorted(found, key=lambda silence: -silence.seconds), status


def _lines(pipe: int) -> Iterator[str]:
    with open(pipe, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            yield line.rstrip()


def _pieces(terminal: int) -> Iterator[str]:
    """Yield the words of each piece that is drawn, without the codes that move the cursor."""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # how Linux says that the last writer has closed the terminal
            data = b""
        if not data:
            os.close(terminal)
            return
        yield " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", data.decode("utf-8", "replace")).split())


def main() -> int:
    """Print the silences of the command that was typed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--show", type=int, default=3, metavar="N")
    parser.add_argument("--terminal", action="store_true", help="record a terminal, and not a pipe")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("name the command to record")
    found, status = silences(command, terminal=given.terminal)
    for silence in found[: given.show]:
        print(f"{silence.seconds:6.1f} s  after   {silence.before[:110]}\n          before  {silence.after[:110]}")
    print(f"exit {status}, {len(found) - 1} {'pieces' if given.terminal else 'lines'}")
    return int(found[0].seconds > given.longest)


if __name__ == "__main__":
    sys.exit(main())
