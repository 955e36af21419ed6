"""Begin in the background what will probably be needed, and take its result when it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

_T = TypeVar("_T")


class Background:
    """Runs actions ahead of time. As a context manager it ends with what runs; what has not begun is dropped.

    Attributes:
        cancel: set when the results are not needed any more. Actions that may take long end then.

    Args:
        workers: the most actions at once; with none, nothing is begun.
    """

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="background") if workers else None
        self._begun: dict[Hashable, Future[Any]] = {}
        self.cancel = threading.Event()

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.cancel.set()
        self.settle()
        if self._pool is not None:
            self._pool.shutdown()

    def settle(self) -> None:
        """Wait for what runs, and drop what has not begun."""
        wait([begun for begun in self._begun.values() if not begun.cancel()])

    def begin(self, key: Hashable, act: Callable[[], Any]) -> None:
        """Begin an action, unless there is one of this key. It may be called from any thread."""
        if self._pool is not None and key not in self._begun:
            self._begun[key] = self._pool.submit(act)

    def result(self, key: Hashable, act: Callable[[], _T]) -> _T:
        """Return the result of the action that was begun under this key, or of ``act``. Raises what that raises."""
        begun = self._begun.get(key)
        if begun is None or begun.cancel():
            return act()
        result: _T = begun.result()
        return result
