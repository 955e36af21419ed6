"""Wait for what happens beside a test, and find the processes that it left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil

_SECONDS = 240.0


def eventually(condition: Callable[[], bool]) -> bool:
    """Return true as soon as a condition holds, and its last answer after four minutes.

    A test that passes does not wait so long; a disk that is busy with gigabytes of torch can take a minute for a file.
    """
    until = time.monotonic() + _SECONDS
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


def processes_of(folder: str | os.PathLike[str], word: str = "") -> list[psutil.Process]:
    """Return the living processes that have this ``TMPDIR``, and a word in their command line."""
    found = []
    for one in psutil.process_iter():
        try:
            line, living = one.cmdline(), one.status() != psutil.STATUS_ZOMBIE
            if living and one.environ().get("TMPDIR") == os.fspath(folder) and any(word in part for part in line):
                found.append(one)
        except psutil.Error:
            continue
    return found
