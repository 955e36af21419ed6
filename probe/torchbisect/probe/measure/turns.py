"""Two runs at once that take turns, so that what they time is of the same second."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from torchbisect.containers.store.run_folder import temporary_folder

T = TypeVar("T")
#: More than the turns that a run waits for.
_ENOUGH = b"." * 64


def in_turns(first: Callable[[list[str]], T], second: Callable[[list[str]], T]) -> tuple[T, T]:
    """Return the results of two runs; each gets the paths of its own pipe and of the other's (see ``Turns``).

    The first run has the first turn. A run whose partner has ended never waits.
    """
    with temporary_folder("turns") as folder, ThreadPoolExecutor(2, thread_name_prefix="turn") as pool:
        paths = [os.path.join(folder, name) for name in ("first", "second")]
        for path in paths:
            os.mkfifo(path, 0o600)
        ends = [os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK) for path in paths]
        try:
            os.write(ends[0], b".")
            runs = [pool.submit(first, paths), pool.submit(second, paths[::-1])]
            for run, other in zip(runs, reversed(ends)):
                run.add_done_callback(partial(_release, other))
            return runs[0].result(), runs[1].result()
        finally:
            pool.shutdown()
            for end in ends:
                os.close(end)


def _release(pipe: int, _: Future[T]) -> None:
    """Give a run all its turns, as its partner has ended."""
    os.write(pipe, _ENOUGH)
