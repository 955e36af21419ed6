"""File locks, shared or exclusive, between threads and processes; the system releases a dead holder's lock.

They use ``flock`` on a file that stays: a process that was killed leaves nothing to clean up.

fasteners' reader-writer lock does not fit: it uses ``lockf``, by which two threads of one process do not exclude each
other and closing one lock releases all. filelock's keeps an SQLite database, which a forked process can't use.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchbisect.containers.store.disk import disk_errors
from torchbisect.core.errors import MachineError
from torchbisect.core.retry import Notify, silent

_BUSY = frozenset({errno.EWOULDBLOCK, errno.EACCES})
_POLL_SECONDS = 0.05
_QUIET_SECONDS = 1.0


class FileLock:
    """One holding of a lock file, by one thread; another ``FileLock`` of the same path excludes it unless both share.

    The file itself stays: if it were removed, two holders could lock two different files of one name.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self.path = path
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free. Raise ``MachineError`` if the file can't be made or locked."""
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, self._mode | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _BUSY:
                return False
            raise MachineError(
                f"{self.path} can't be locked ({error.strerror}): name a folder on a local disk with --cache-dir"
            ) from error
        self._descriptor = descriptor
        return True

    def acquire(self, *, waiting: str = "", notify: Notify = silent, cancel: threading.Event | None = None) -> bool:
        """Wait for the lock and take it; return false if ``cancel`` was set first.

        After a second, ``notify`` is told ``waiting``, the reason for the wait.
        """
        begun = time.monotonic()
        notified = not waiting
        while not self.try_acquire():
            if cancel is not None and cancel.is_set():
                return False
            if not notified and time.monotonic() - begun > _QUIET_SECONDS:
                notify(waiting)
                notified = True
            time.sleep(_POLL_SECONDS)
        return True

    def release(self) -> None:
        """Release the lock; do nothing if it isn't held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    @contextmanager
    def held(self, waiting: str = "", notify: Notify = silent) -> Iterator[None]:
        """Wait for the lock, and hold it as long as the context lasts."""
        self.acquire(waiting=waiting, notify=notify)
        try:
            yield
        finally:
            self.release()

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Hold the lock as long as the context lasts, if it is free; yield true if it is held."""
        taken = self.try_acquire()
        try:
            yield taken
        finally:
            self.release()
