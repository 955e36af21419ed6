"""The progress display of a run, on standard error: live on a terminal, plain lines elsewhere."""

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

# Seconds between two status lines where there is no terminal: often enough to show that the run is alive.
_PLAIN_SECONDS = 10.0


class Display:
    """Shows the progress of a run; several threads may use it.

    Args:
        verbosity: 1 shows details too, -1 shows warnings only.
        stream: the stream that is written to; standard error by default.
    """

    def __init__(self, verbosity: int = 0, stream: TextIO | None = None) -> None:
        self._verbosity = verbosity
        self._console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)
        self._lock = threading.RLock()
        self._live: Status | None = None
        self._stage = ""
        self._last_print = 0.0

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show a stage for as long as the context lasts; its title precedes each status."""
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
        """Print a line."""
        if self._verbosity >= 0:
            self._print(text, markup)

    def result(self, text: str) -> None:
        """Print a line, indented under its stage."""
        self.line(f"  {text}")

    def detail(self, text: str) -> None:
        """Print a line for ``-v`` only."""
        if self._verbosity >= 1:
            self._print(f"  · {text}", False)

    def warn(self, text: str) -> None:
        """Print a warning; ``-q`` does not silence it."""
        self._print(f"  ! {text}", False)

    def error(self, text: str) -> None:
        """Print the reason why the command has no result."""
        self._print(f"torchbisect: {text}", False)

    def status(self, text: str) -> None:
        """Show the work in progress. On a terminal it replaces the last status; elsewhere some are printed as lines."""
        if self._verbosity < 0:
            return
        with self._lock:
            if self._live is not None:
                self._live.update(escape(f"{self._stage}: {text}"))
            elif not self._console.is_terminal and time.monotonic() - self._last_print >= _PLAIN_SECONDS:
                self._print(f"  … {text}", False)

    def _print(self, text: str, markup: bool) -> None:
        with self._lock:
            self._last_print = time.monotonic()
            self._console.print(text, markup=markup)
