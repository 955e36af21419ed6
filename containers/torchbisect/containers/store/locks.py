"""File locks, shared or exclusive, between threads and processes; the system releases a dead holder's lock.

They use ``flock`` on a file that stays: a process that was killed leaves nothing to clean up.

fasteners' reader-writer lock does not fit: it uses ``lockf``, by which two threads of one process do not exclude each
other and closing one lock releases all. filelock's keeps an SQLite database, which a forked process can't use.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchbisect.containers.store.disk import disk_errors
from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.regular_file import open_own_file
from torchbisect.core.retry import Notify, silent

_BUSY = frozenset({errno.EWOULDBLOCK, errno.EACCES})
_POLL_SECONDS = 0.05
_ATTEMPTS = 100
_QUIET_SECONDS = 1.0
_LONGEST_SIGNATURE = 200

#: The lock file in a folder of results.
RESULTS_LOCK = ".lock"


class FileLock:
    """One holding of a lock file, by one thread; another ``FileLock`` of the same path excludes it unless both share.

    The file itself stays: if it were removed, two holders could lock two different files of one name.
    """

    def __init__(self, path: Path, *, shared: bool = False, option: str = "--cache-dir") -> None:
        """Name the file; ``option`` is the one that a message names as the way to another folder."""
        self.path = path
        self._option = option
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free. Raise ``MachineError`` if the file can't be made or locked."""
        with disk_errors(self.path):
            descriptor = self._open()
        try:
            fcntl.flock(descriptor, self._mode | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _BUSY:
                return False
            raise MachineError(
                f"{self.path} can't be locked ({error.strerror}): name a folder on a local disk with {self._option}"
            ) from error
        self._descriptor = descriptor
        return True

    def _open(self) -> int:
        """Open the file, and make its folder, which another process may remove at any moment."""
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(FileNotFoundError, FileExistsError):  # mkdir raises both if it is removed then
                return self._open_once()
        return self._open_once()

    def _open_once(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return open_own_file(self.path, os.O_RDWR)

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

    def sign(self) -> None:
        """Write this process and the time into the held file, for ``holder``."""
        moment = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        self.write(f"process {os.getpid()} on {platform.node()} since {moment}")

    def write(self, text: str) -> None:
        """Write a text into the held file, for others to read; a full disk leaves it empty."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, text.encode(), 0)

    def is_in_place(self) -> bool:
        """Return true if the held file still has its name: whoever removes it, removes it under the lock."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return self._descriptor is not None and os.path.samestat(found, os.fstat(self._descriptor))

    def holder(self) -> str:
        """Return who signed the lock last, in words; only meaningful while another holds it."""
        with contextlib.suppress(OSError):
            signed = self.path.read_bytes()[:_LONGEST_SIGNATURE].decode("utf-8", "replace")
            return "".join(filter(str.isprintable, signed)) or "another process"
        return "another process"

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


def lock_results(folder: Path, *, on_wait: Notify | None = None) -> FileLock:
    """Lock a folder of results, because two runs in one folder would ask every question twice.

    Args:
        folder: the folder.
        on_wait: told of the wait for another process; by default the lock is not waited for.

    Raises:
        InputError: another process works there, and it is not waited for; the message names it.
        MachineError: the folder can't be locked.
    """
    lock = FileLock(folder / RESULTS_LOCK, option="--out")
    if not lock.try_acquire():
        if on_wait is None:
            raise InputError(f"--out {folder}: {lock.holder()} works there: wait for its end, or name another folder")
        lock.acquire(waiting=f"{lock.holder()} works in {folder}: waiting for its end", notify=on_wait)
    lock.sign()
    return lock
