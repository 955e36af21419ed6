"""Remove what a run leaves in the kernel: System V shared memory, semaphores and queues, which outlive every process.

This is for a machine that belongs to the agent alone, as a container does: there is no telling whose an object is.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Iterator

_IPC_RMID = 0


def remove_all() -> None:
    """Remove every such object that this user may remove."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for number in _listed("shm"):
            libc.shmctl(number, _IPC_RMID, None)
        for number in _listed("sem"):
            libc.semctl(number, 0, _IPC_RMID)
        for number in _listed("msg"):
            libc.msgctl(number, _IPC_RMID, None)


def _listed(kind: str) -> Iterator[int]:
    """Yield the numbers of the objects of a kind; the first line of the list has the names of its columns."""
    with contextlib.suppress(OSError), open("/proc/sysvipc/" + kind) as lines:
        next(lines, None)
        for line in list(lines):
            yield int(line.split()[1])
