"""The progress display of a run, on standard error: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

import psutil
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.text import Text

from torchbisect.core.printable import shown_line
from torchbisect.core.scrub import scrub
from torchbisect.core.timing import timed

# Seconds between two status lines where there is no terminal, at most a quarter more: no two may be ten seconds apart.
_PLAIN_SECONDS = 6.0
# Seconds between two updates of the elapsed time on a terminal.
_LIVE_SECONDS = 0.5

INTERRUPTED = "interrupted: give the same command again, and it continues where it stopped"

#: A status, or a function that returns the present one.
StatusText = str | Callable[[], str]


@dataclass
class _Work:
    """Work in progress: its title, the present status, and how much of it is done."""

    title: str = ""
    status: StatusText = ""
    done: int = 0
    total: int | None = None
    began: float = field(default_factory=time.monotonic)

    def described(self) -> str:
        """Return the title, the status, the time since the beginning, and an estimate of the time that is left."""
        status = self.status if isinstance(self.status, str) else self.status()
        elapsed = time.monotonic() - self.began
        times = format_seconds(elapsed)
        if self.total is not None and 0 < self.done < self.total:
            times += f", about {format_seconds(elapsed / self.done * (self.total - self.done))} left"
        return f"{': '.join(filter(None, (self.title, status)))} ({times})"


def format_seconds(seconds: float) -> str:
    """Return a time as people read it: ``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _beginning_of_process() -> float:
    """Return when this process began, in seconds of ``time.monotonic``: until a first line, a user has waited since."""
    try:
        age = time.time() - psutil.Process().create_time()
    except psutil.Error:
        age = 0.0
    return time.monotonic() - max(age, 0.0)


class Display:
    """Shows the progress of a run, without secrets; several threads may use it.

    While there is work, a thread shows what is done and for how long: it updates the line on a terminal, and prints
    one every few seconds elsewhere.

    Args:
        verbosity: 1 shows details too, -1 shows warnings only.
        stream: the stream that is written to; standard error by default.
        every: the seconds between two lines where there is no terminal.
    """

    def __init__(self, verbosity: int = 0, stream: TextIO | None = None, *, every: float = _PLAIN_SECONDS) -> None:
        self._verbosity = verbosity
        self._console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)
        self._animated = self._console.is_terminal and not self._console.is_dumb_terminal
        self._every = every
        self._lock = threading.RLock()
        self._live: Status | None = None
        self._work: list[_Work] = []
        self._last_print = _beginning_of_process()

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show a stage for as long as the context lasts; its title precedes each status."""
        began = time.monotonic()
        self.line(f"[bold]{escape(title)}[/bold]" if self._console.is_terminal else title, markup=True)
        try:
            with timed("stage", title), self.working(title):
                yield
        finally:
            self.detail(f"{title}: {time.monotonic() - began:.1f} s")

    @contextmanager
    def working(self, title: str = "") -> Iterator[None]:
        """Show that work is in progress for as long as the context lasts; inside another, it is shown instead."""
        work = _Work(title)
        with self._lock:
            self._work.append(work)
            outermost = len(self._work) == 1
        stop = threading.Event()
        beat = threading.Thread(target=self._beat, args=(stop,), daemon=True)
        if outermost and self._verbosity >= 0:
            beat.start()
        try:
            yield
        finally:
            stop.set()
            with self._lock:
                self._work.remove(work)
                if outermost and self._live is not None:
                    self._live.stop()
                    self._live = None
            if beat.ident is not None:
                beat.join()

    def line(self, text: str, *, markup: bool = False) -> None:
        """Print a line."""
        if self._verbosity >= 0:
            self._print(text, markup)

    def lines(self, texts: Iterable[str]) -> None:
        """Print several lines."""
        for text in texts:
            self.line(text)

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

    def status(self, text: StatusText, done: int | None = None, total: int | None = None) -> None:
        """Show the work in progress, and that ``done`` of about ``total`` equal parts of it are done."""
        with self._lock:
            if self._work:
                self._work[-1].status = text
            if done is not None:
                self.count(done, total)
            self._show()

    def count(self, done: int, total: int | None) -> None:
        """Set the parts that are done of the present work, for an estimate of the time that is left."""
        with self._lock:
            if self._work:
                self._work[-1].done, self._work[-1].total = done, total

    def _beat(self, stop: threading.Event) -> None:
        """Show the present work again and again, until ``stop`` is set."""
        pause = _LIVE_SECONDS if self._animated else self._every / 4
        while not stop.wait(pause):
            with self._lock:
                if not stop.is_set():
                    self._show()

    def _show(self) -> None:
        """Show the present work: at once on a terminal, elsewhere unless a line was printed a moment ago."""
        if self._verbosity < 0 or not self._work:
            return
        if not self._animated:
            if time.monotonic() - self._last_print >= self._every:
                self._print(f"  … {self._work[-1].described()}", False)
            return
        # The line is cut at the terminal's edge: a second one would leave its remains behind.
        words = Text(shown_line(scrub(self._work[-1].described())), no_wrap=True, overflow="ellipsis")
        if self._live is None:
            self._live = self._console.status(words)
            self._live.start()
        else:
            self._live.update(words)

    def _print(self, text: str, markup: bool) -> None:
        with self._lock:
            self._last_print = time.monotonic()
            self._console.print(shown_line(scrub(text)), markup=markup)
