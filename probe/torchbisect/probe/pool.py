"""Several oracles of one environment: while one question is asked, those that likely come next are asked beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from queue import LifoQueue
from types import TracebackType
from typing import Any, TypeVar

from torchbisect.core.errors import TorchbisectError
from torchbisect.core.verdict import Verdict
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.question import Question

_T = TypeVar("_T")


class Pool:
    """Asks what it is asked, and with the oracles that have nothing to do what it was told to expect.

    Used from one thread. Answers are those of the first oracle alone, only sooner: what was expected and is never
    asked costs nothing but an idle processor's time.

    Args:
        oracle: the first; its owner ends it, and must leave it alone while the pool is open.
        size: how many questions are asked at once.
    """

    def __init__(self, oracle: Oracle, size: int) -> None:
        self._oracle = oracle
        self._helpers = [oracle.clone() for _ in range(size - 1)]
        self._free: LifoQueue[Oracle] = LifoQueue()
        self._free.put(oracle)
        self._threads = ThreadPoolExecutor(2 * size)
        self._begun: dict[Question, Future[Verdict]] = {}
        self._expected: Iterator[Question] = iter(())
        self._closed = False
        self._starting: list[Future[Any]] = [self._threads.submit(self._start, helper) for helper in self._helpers]

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        """End the helpers and wait for the first oracle to have nothing to do; on an error end what it does, too."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for oracle in [*self._helpers, *([self._oracle] if error is not None else [])]:
            oracle.close()
        self._threads.shutdown(wait=True)

    def expect(self, questions: Iterable[Question]) -> None:
        """Say what will be asked after the next question, the likeliest first; taken as far as there is time for."""
        self._expected = iter(questions)

    def ask(self, question: Question) -> Verdict:
        """Whether a script still shows a mismatch. Raises what the oracle raises."""
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

    def alone(self, act: Callable[[Oracle], _T]) -> _T:
        """Have one of the oracles to oneself."""
        oracle = self._free.get()
        try:
            return act(oracle)
        finally:
            self._free.put(oracle)

    def _begin(self, question: Question) -> Future[Verdict]:
        if question not in self._begun:
            self._begun[question] = self._threads.submit(self.alone, lambda oracle: self._asked(oracle, question))
        return self._begun[question]

    def _asked(self, oracle: Oracle, question: Question) -> Verdict:
        if self._closed:
            raise RuntimeError("the pool is closed")
        return oracle.ask(question)

    def _start(self, helper: Oracle) -> None:
        """A helper is of use once it is warm: nobody is to wait for that. One that can't start is none."""
        with contextlib.suppress(TorchbisectError):
            helper.start()
            self._free.put(helper)
