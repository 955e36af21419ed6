"""List, measure and kill the processes that a script started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import Dict, List, Optional, Tuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
_MARGIN = 1.25  # the child limits itself first; this limit applies to all of its processes together


def adopt_orphans() -> None:
    """Become the parent of processes whose parent ends, so that none can escape (``PR_SET_CHILD_SUBREAPER``)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _stat(number: int) -> List[bytes]:
    """Return the fields of ``/proc/PID/stat`` from the state on; none if the process has ended."""
    try:
        with open("/proc/{}/stat".format(number), "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def family_of(child: int) -> List[int]:
    """Return the child's family: the child, its session, the orphans adopted here, and all descendants of these."""
    family = {child}
    parents: Dict[int, List[int]] = {}
    for number in map(int, filter(str.isdigit, os.listdir("/proc"))):
        fields = _stat(number)
        if fields:
            parents.setdefault(int(fields[1]), []).append(number)
            if int(fields[3]) == child:
                family.add(number)
    family.update(parents.get(os.getpid(), ()))
    pending = list(family)
    while pending:
        for number in parents.get(pending.pop(), ()):
            if number not in family:
                family.add(number)
                pending.append(number)
    return sorted(family)


def _thread_count(number: int) -> int:
    fields = _stat(number)
    return int(fields[17]) if fields else 0


def private_memory(number: int) -> int:
    """Return the anonymous memory of a process in bytes, including what it inherited."""
    try:
        with open("/proc/{}/statm".format(number), "rb") as file:
            fields = file.read().split()
        return (int(fields[1]) - int(fields[2])) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def exceeded_limit(child: int, memory: int, processes: int, tasks: int) -> Optional[str]:
    """Return the limit that the child's family exceeds: ``processes``, ``threads`` or ``memory``; ``None`` for none.

    Args:
        child: the process id.
        memory: bytes of private memory beyond what was inherited; 0 for no limit.
        processes: the number of processes; 0 for no limit.
        tasks: the number of threads of all of them.
    """
    family = family_of(child)
    if processes and len(family) > processes:
        return "processes"
    if sum(map(_thread_count, family)) > tasks:
        return "threads"
    if memory:
        inherited = private_memory(os.getpid())
        used = sum(max(0, private_memory(number) - inherited) for number in family)
        if used > memory * _MARGIN:
            return "memory"
    return None


class RunClock:
    """A time limit that allows for other load on the machine, so that a slow compile there is not reported as a hang.

    It applies to processor time, and to wall time if the run is idle. Wall time is limited to several times as much.
    """

    WALL_FACTOR = 4.0
    IDLE_SHARE = 0.02  # a run that uses less than this share of one processor is idle
    IDLE_WINDOW = 1.0  # seconds

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()
        self._samples: List[Tuple[float, float]] = [(self._began, 0.0)]

    def is_expired(self, child: int) -> bool:
        """Return True if the child's family has used up its time. Call this a few times a second."""
        now = time.monotonic()
        wall = now - self._began
        used = sum(cpu_seconds(number) for number in family_of(child))
        while len(self._samples) > 1 and now - self._samples[1][0] >= self.IDLE_WINDOW:
            self._samples.pop(0)
        since, before = self._samples[0]
        self._samples.append((now, used))
        if wall < self._seconds:
            return False
        idle = used - before < (now - since) * self.IDLE_SHARE
        return idle or used >= self._seconds * 0.9 or wall >= self._seconds * self.WALL_FACTOR


def cpu_seconds(number: int) -> float:
    """Return the processor seconds of a process and of its children that have ended."""
    return sum(int(field) for field in _stat(number)[11:15]) / TICKS


def end_family(child: int, is_running: bool) -> None:
    """Kill all processes that the child started, and the child if it ``is_running``; wait until they have ended.

    If some do not end, the agent does, and with it its container: no later run may meet them.
    """
    for attempt in range(200):
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        if is_running and attempt == 0:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        _reap_all()
        # Listing the processes costs milliseconds, so it is skipped where no process can be left.
        if attempt == 0 and not _has_children():
            break
        left = [number for number in family_of(child) if number != child or is_running]
        left = [number for number in left if _stat(number)[:1] not in ([], [b"Z"])]
        if not left:
            break
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.002)
    else:
        sys.exit("processes of a run can't be ended")
    _reap_all()


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    except OSError:
        pass
    return True


def _reap_all() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except OSError:
            return
