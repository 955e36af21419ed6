"""Leases: locks that keep an environment from being removed while a run uses it.

Both kinds of environments follow one protocol over two lock files. Users share the lease lock; whoever removes an
environment takes it alone. Whoever makes an environment holds its install lock, which one process does at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.locks import FileLock
from torchbisect.core.build import Build
from torchbisect.core.retry import Notify

Found = TypeVar("Found")


class Leases:
    """The leases that one run holds. Safe to use from several threads."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._held: dict[str, list[FileLock]] = {}
        self._guard = threading.Lock()
        self._closed = threading.Event()

    def acquire(
        self,
        key: str,
        build: Build,
        *,
        find: Callable[[], Found | None],
        exists: Callable[[], bool],
        make: Callable[[], None],
        notify: Notify,
        cancel: threading.Event | None = None,
    ) -> Found | None:
        """Lease an environment, making it first if it isn't there; return ``None`` if the wait was ended.

        Another run may remove the environment between the making and the leasing; then it is made again.

        Args:
            key: the environment's name.
            build: the build in it, for messages.
            find: returns the finished environment or ``None``; called while the lease is held.
            exists: returns true for a finished environment; called while the install lock is held.
            make: makes the environment; called while the install lock is held.
            notify: told of waits for other runs.
            cancel: ends the wait for another run's install; by default ``close`` does.
        """
        while True:
            lease = self._cache.lease_lock(key)
            lease.acquire(waiting=f"{key} is being removed by another run: waiting to install it again", notify=notify)
            try:
                found = find()
            except BaseException:
                lease.release()
                raise
            if found is not None:
                with self._guard:
                    self._held.setdefault(key, []).append(lease)
                return found
            lease.release()
            lock = self._cache.install_lock(key)
            waiting = f"torch {build} is being installed already: waiting for it"
            if not lock.acquire(waiting=waiting, notify=notify, cancel=cancel or self._closed):
                return None
            try:
                if not exists():
                    make()
            finally:
                lock.release()

    def release(self, key: str) -> bool:
        """Give back one lease of an environment; return false if none is held."""
        with self._guard:
            held = self._held.get(key)
            lease = held.pop() if held else None
        if lease is None:
            return False
        lease.release()
        return True

    def close(self) -> None:
        """Give back all leases, and end the waits for other runs."""
        self._closed.set()
        with self._guard:
            leases = [lease for held in self._held.values() for lease in held]
            self._held.clear()
        for lease in leases:
            lease.release()
