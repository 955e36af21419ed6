"""Locks on files: shared or alone, across threads and processes, and given up by the system when their holder dies.

``flock`` and not a file that merely exists: a process that was killed leaves nothing to clean up.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from pathlib import Path
from types import TracebackType

from torchbisect.containers.store.disk import disk_errors
from torchbisect.core.errors import MachineError
from torchbisect.core.retry import Notify, silent

_BUSY = frozenset({errno.EWOULDBLOCK, errno.EACCES})
_STEP = 0.05
_QUIET = 1.0


class FileLock:
    """One holding of a lock file: made for one use by one thread; two of the same path exclude each other.

    The file itself stays: removing it would let two holders lock two different files of one name.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """
        Args:
            path: the lock file; made if it isn't there.
            shared: whether others may hold it too, as long as they also share.
        """
        self.path = path
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free. Raises ``MachineError`` where the file can't be made or doesn't take locks."""
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
        """Take the lock, waiting for it; ``False`` if ``cancel`` was set first.

        Args:
            waiting: what to tell the user once it takes more than a second: why there is a wait.
            notify: told ``waiting``.
            cancel: ends the wait.
        """
        begun = time.monotonic()
        told = not waiting
        while not self.try_acquire():
            if cancel is not None and cancel.is_set():
                return False
            if not told and time.monotonic() - begun > _QUIET:
                notify(waiting)
                told = True
            time.sleep(_STEP)
        return True

    def release(self) -> None:
        """Give the lock up; nothing happens if it isn't held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
