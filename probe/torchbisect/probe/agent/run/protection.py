"""Keep scripts, which run under the agent's user, out of the agent's memory, descriptors and limits."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
from typing import Any, Optional

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_CAP_SYS_PTRACE = 19
_CAPABILITY_VERSION_3 = 0x20080522
_PR_GET_TIMERSLACK = 30
_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}.get(platform.machine())
_IOPRIO_WHO_PROCESS = 1
_LIMITS = sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})


def close_memory() -> None:
    """Refuse access to this process by others of its user: ``/proc/PID/mem``, ``/proc/PID/fd``, ``ptrace``."""
    _prctl(_PR_SET_DUMPABLE, 0)


def open_memory() -> None:
    """Undo ``close_memory`` in a child, which inherits it: scripts and debuggers read their own ``/proc/self``.

    If the user is root, the child also gives up the capability by which root may trace every process.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, and the upper halves of these
        if libc.capget(header, sets) == 0 and sets[1] & 1 << _CAP_SYS_PTRACE:
            _prctl(_PR_CAPBSET_DROP, _CAP_SYS_PTRACE)
            for at in range(3):
                sets[at] &= ~(1 << _CAP_SYS_PTRACE)
            libc.capset(header, sets)
    _prctl(_PR_SET_DUMPABLE, 1)


def kernel_state() -> Any:
    """Return what another process of the same user can change about this one, by ``prlimit`` and its like."""
    return (
        [resource.getrlimit(limit) for limit in _LIMITS],
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        os.sched_getaffinity(0),
        _prctl(_PR_GET_TIMERSLACK, 0),
        _io_priority(),
    )


def _io_priority() -> Optional[int]:
    with contextlib.suppress(OSError, AttributeError):
        return int(ctypes.CDLL(None).syscall(_IOPRIO_GET, _IOPRIO_WHO_PROCESS, 0)) if _IOPRIO_GET else None
    return None


def _prctl(option: int, argument: int) -> Optional[int]:
    with contextlib.suppress(OSError, AttributeError):
        return int(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0))
    return None
