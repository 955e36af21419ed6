"""A pool of oracles of one environment, which asks the questions that likely come next ahead of time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from queue import Empty, LifoQueue
from types import TracebackType
from typing import Any, TypeVar

from torchbisect.core.errors import TorchbisectError
from torchbisect.core.verdict import Verdict
from torchbisect.probe.oracle import Oracle, Question

_T = TypeVar("_T")


class Pool:
    """Answers questions with the first free oracle, and asks expected questions with the others.

    A pool is used from one thread. Its answers are those of a single oracle, only sooner. A question that was expected
    and is never asked costs only the time of an idle processor.

    Attributes:
        first: the result of the function of that name.

    Args:
        oracle: the first oracle; its owner closes it, and must not use it while the pool is open.
        size: the number of questions asked at once.
        first: is called with the first helper before that answers questions, or with the oracle if there is no helper.
    """

    def __init__(self, oracle: Oracle, size: int, first: Callable[[Oracle], Any] = lambda helper: None) -> None:
        self._oracle = oracle
        self._helpers = [oracle.clone() for _ in range(size - 1)]
        self._free: LifoQueue[Oracle] = LifoQueue()
        self._free.put(oracle)
        self._threads = ThreadPoolExecutor(2 * size)
        self._begun: dict[Question, Future[Verdict]] = {}
        self._expected: Iterator[Question] = iter(())
        self._closed = False
        self._beginning = threading.Lock()
        self._answering: list[Oracle] = []
        self.first = self._threads.submit(first, self._helpers[0] if self._helpers else oracle)
        if not self._helpers:
            self.first.exception()
        self._starting: list[Future[Any]] = [self._threads.submit(self._start, helper) for helper in self._helpers]

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        """Close the helpers and wait for the first oracle; after an error, close that too.

        The process of a helper that has nothing to do is left to the first oracle, for the helper of the next pool.
        """
        with self._beginning:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        idle = self._idle() if error is None else []
        for helper in self._helpers:
            if helper in idle:
                self._oracle.take_over(helper)
            helper.close()
        if error is not None:
            self._oracle.close()
        self._threads.shutdown(wait=True)

    def expect(self, questions: Iterable[Question]) -> None:
        """Set the questions that are likely to follow the next one, the likeliest first."""
        self._expected = iter(questions)

    def ask(self, question: Question) -> Verdict:
        """Answer a question. Raises what the oracle raises."""
        wanted = self._begin(question)
        while not wanted.done():
            running: set[Future[Any]] = {item for item in self._begun.values() if not item.done()}
            starting = {item for item in self._starting if not item.done()}
            ready = 1 + len(self._starting) - len(starting)
            following = next(self._expected, None) if len(running) < ready else None
            if following is not None:
                self._begin(following)
            else:
                wait([*running, *starting], return_when=FIRST_COMPLETED)
        del self._begun[question]
        return wanted.result()

    def times_shown(self, question: Question, times: int) -> int:
        """Return how many of so many further runs show the mismatch; they are made side by side."""

        def ask_again(number: int) -> Verdict:
            return self.alone(lambda oracle: oracle.ask_again(question, number))

        return sum(verdict.same for verdict in self._threads.map(ask_again, range(1, times + 1)))

    def alone(self, act: Callable[[Oracle], _T]) -> _T:
        """Call a function with an oracle that nobody else uses meanwhile."""
        oracle = self._free.get()
        try:
            return act(oracle)
        finally:
            self._free.put(oracle)

    def _begin(self, question: Question) -> Future[Verdict]:
        if question not in self._begun:
            self._begun[question] = self._threads.submit(self.alone, lambda oracle: self._asked(oracle, question))
        return self._begun[question]

    def _idle(self) -> list[Oracle]:
        """Return the oracles that nobody uses; a closed pool gives them nothing more to do."""
        found: list[Oracle] = []
        with contextlib.suppress(Empty):
            while True:
                found.append(self._free.get_nowait())
        for oracle in found:
            self._free.put(oracle)
        # Where the function of the beginning is all that a helper did, its process serves the next pool too.
        waiting = self._helpers[:1] if self.first.done() else []
        return [*found, *(helper for helper in waiting if helper not in self._answering)]

    def _asked(self, oracle: Oracle, question: Question) -> Verdict:
        if self._closed:
            raise RuntimeError("the pool is closed")
        return oracle.ask(question)

    def _start(self, helper: Oracle) -> None:
        """Start a helper in the background; one that can't start is left out."""
        if helper is self._helpers[0]:
            self.first.exception()
        with self._beginning:
            if self._closed:
                return
            self._answering.append(helper)
        with contextlib.suppress(TorchbisectError):
            helper.start()
            self._free.put(helper)
