"""What a run says while it goes on: live on a terminal, plain lines elsewhere, always on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.status import Status

# On something that isn't a terminal a status is a line of its own: often enough to be seen alive, not so
# often that a log is drowned.
_PLAIN_SECONDS = 10.0


class Display:
    """Says what goes on; may be used from several threads.

    Args:
        verbosity: 1 shows details too, -1 nothing but warnings.
        stream: where to, standard error if left out.
    """

    def __init__(self, verbosity: int = 0, stream: TextIO | None = None) -> None:
        self._verbosity = verbosity
        self._console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)
        self._lock = threading.RLock()
        self._live: Status | None = None
        self._stage = ""
        self._spoke = 0.0

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Everything inside belongs to the stage ``title``; its name leads each status."""
        self._stage, began = title, time.monotonic()
        self.line(f"[bold]{escape(title)}[/bold]" if self._console.is_terminal else title, markup=True)
        if self._console.is_terminal and self._verbosity >= 0:
            self._live = self._console.status(escape(title))
            self._live.start()
        try:
            yield
        finally:
            with self._lock:
                if self._live is not None:
                    self._live.stop()
                self._live, self._stage = None, ""
            self.detail(f"{title}: {time.monotonic() - began:.1f} s")

    def line(self, text: str, *, markup: bool = False) -> None:
        """A line that stays."""
        if self._verbosity >= 0:
            self._print(text, markup)

    def result(self, text: str) -> None:
        """A line that stays, set in under its stage."""
        self.line(f"  {text}")

    def detail(self, text: str) -> None:
        """A line for ``-v`` only."""
        if self._verbosity >= 1:
            self._print(f"  · {text}", False)

    def warn(self, text: str) -> None:
        """A line that stays and that ``-q`` does not silence."""
        self._print(f"  ! {text}", False)

    def error(self, text: str) -> None:
        """The one line that says why the command came to nothing."""
        self._print(f"torchbisect: {text}", False)

    def status(self, text: str) -> None:
        """What is being done right now: replaces the last status on a terminal, a line now and then elsewhere."""
        if self._verbosity < 0:
            return
        with self._lock:
            if self._live is not None:
                self._live.update(escape(f"{self._stage}: {text}"))
            elif not self._console.is_terminal and time.monotonic() - self._spoke >= _PLAIN_SECONDS:
                self._print(f"  … {text}", False)

    def _print(self, text: str, markup: bool) -> None:
        with self._lock:
            self._spoke = time.monotonic()
            self._console.print(text, markup=markup)
