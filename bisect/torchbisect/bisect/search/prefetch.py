"""Fetching of builds that may be asked next, while the present one runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic

from torchbisect.bisect.search.evidence import T


class Prefetcher(Generic[T]):
    """Fetches likely builds, one thread for each; the ``prefetch`` argument of ``find_boundaries``.

    Args:
        fetch: fetches a build, until the event is set. It must not raise: a failure comes back when the build is asked.
        room: called with the number of running fetches; false if the disk has no room for one more.
    """

    def __init__(
        self, fetch: Callable[[T, threading.Event], None], room: Callable[[int], bool] = lambda _: True
    ) -> None:
        self._fetch = fetch
        self._room = room
        self._running: dict[T, tuple[threading.Event, threading.Thread]] = {}
        self._stopping: list[threading.Thread] = []

    def __enter__(self) -> Prefetcher[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, likely: Sequence[T], asking: Sequence[T]) -> None:
        """Fetch these builds from now on, and stop all other fetches.

        Args:
            likely: the builds that may be asked next, the likelier first.
            asking: builds that are being asked now; a fetch of one of these continues, because it is waited for.
        """
        for item in [item for item in self._running if item not in likely and item not in asking]:
            self._stop(item)
        for item in likely:
            if item not in self._running and self._room(self._alive()):
                event = threading.Event()
                thread = threading.Thread(target=self._fetch, args=(item, event), name=f"fetch {item}", daemon=True)
                self._running[item] = event, thread
                thread.start()

    def close(self) -> None:
        """Stop all fetches, and wait until they have ended."""
        for item in list(self._running):
            self._stop(item)
        for thread in self._stopping:
            thread.join()
        self._stopping.clear()

    def _alive(self) -> int:
        """Return the number of running fetches, with those that were told to stop and have not ended yet."""
        return sum(thread.is_alive() for thread in [*self._stopping, *(thread for _, thread in self._running.values())])

    def _stop(self, item: T) -> None:
        event, thread = self._running.pop(item)
        event.set()
        self._stopping = [*(other for other in self._stopping if other.is_alive()), thread]
