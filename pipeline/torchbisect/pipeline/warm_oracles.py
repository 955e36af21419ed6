"""Keep the oracles of the builds asked last, and start those of builds that may be asked next.

The start of an oracle imports torch, which takes longer than most questions.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass

from torchbisect.core.build import Build
from torchbisect.core.errors import TorchbisectError
from torchbisect.probe.oracle import Oracle, Question

#: The most oracles that wait for a question: two that may be next, and those that the original will be asked of at the
#: end. Each is an imported torch.
MOST_IDLE = 6
#: The most oracles that are started ahead of a question at once.
MOST_STARTING = max(1, (os.cpu_count() or 2) - 1)


@dataclass(frozen=True)
class _Opened:
    """An oracle, what it was opened with, and the thread that starts it, if one does."""

    oracle: Oracle
    stack: ExitStack
    starting: threading.Thread | None = None

    @property
    def is_starting(self) -> bool:
        return self.starting is not None and self.starting.is_alive()

    def close(self) -> None:
        with self.stack:
            if self.starting is not None:
                # A start that has got as far as a process ends with it; one that has not is waited for.
                self.oracle.close()
                self.starting.join()
                self.oracle.close()


class WarmOracles:
    """Lends an oracle for each build, to one question at a time; it may be used from several threads.

    Args:
        opened: opens an oracle for a build; it raises ``InstallFailed`` if the build can't be installed here.
    """

    def __init__(self, opened: Callable[[Build], AbstractContextManager[Oracle]]) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._idle: dict[Build, _Opened] = {}
        self._lent: list[Oracle] = []

    def prepare(self, build: Build, expected: Question | None = None) -> None:
        """Start the oracle of an installed build in the background, for an expected question if one is given.

        One core stays free for the present question, so nothing happens while as many start as there are others. A
        failure is met by the question that needs it.
        """
        with self._lock:
            starting = sum(opened.is_starting for opened in self._idle.values())
            if build in self._idle or starting >= MOST_STARTING:
                return
        with suppress(TorchbisectError):
            stack, oracle = self._open(build)
            thread = threading.Thread(target=_start, args=(oracle, expected), daemon=True, name=f"start {build}")
            thread.start()
            self._keep(build, _Opened(oracle, stack, thread))

    @contextmanager
    def lend(self, build: Build) -> Iterator[Oracle]:
        """Lend the oracle of a build. Raises ``InstallFailed`` if it can't be installed here."""
        with self._lock:
            kept = self._idle.pop(build, None)
        if kept is None:
            stack, oracle = self._open(build)
        else:
            stack, oracle = kept.stack, kept.oracle
            if kept.starting is not None:
                kept.starting.join()
        with stack:
            self._lent.append(oracle)
            try:
                yield oracle
            finally:
                self._lent.remove(oracle)
            self._keep(build, _Opened(oracle, stack.pop_all()))

    def end_questions(self) -> None:
        """End the processes that answer a question now; that question fails with ``AgentFailed``."""
        for oracle in list(self._lent):
            oracle.close()

    def close(self) -> None:
        """End all that are idle, which keep their environments from removal."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for opened in idle.values():
            opened.close()

    def _open(self, build: Build) -> tuple[ExitStack, Oracle]:
        with ExitStack() as stack:
            oracle = stack.enter_context(self._opened(build))
            return stack.pop_all(), oracle

    def _keep(self, build: Build, opened: _Opened) -> None:
        """Keep an oracle, and close the one that has waited longest if they are too many."""
        with self._lock:
            surplus = [opened] if build in self._idle else []
            self._idle.setdefault(build, opened)
            while len(self._idle) > MOST_IDLE:
                surplus.append(self._idle.pop(next(iter(self._idle))))
        for one in surplus:
            one.close()


def _start(oracle: Oracle, expected: Question | None) -> None:
    with suppress(TorchbisectError):
        oracle.start(expected)
