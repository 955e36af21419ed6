"""Processes that a script started: counted, measured, ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
_MARGIN = 1.25  # the limit inside the child comes first; this one is for all processes together


class Process(NamedTuple):
    """A line of ``/proc``."""

    number: int
    parent: int
    session: int


def adopt_orphans() -> None:
    """Make this process the parent of what its children leave behind, so that nothing can slip away."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def listing() -> List[Process]:
    """All processes that can be seen."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/{}/stat".format(name), "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            found.append(Process(int(name), int(fields[1]), int(fields[3])))
    return found


def descendants(child: int) -> List[int]:
    """The child, all in its session, and all that descend from either. Orphans count: this process adopts them."""
    every = listing()
    family = {child}
    parents: Dict[int, List[int]] = {}
    for process in every:
        parents.setdefault(process.parent, []).append(process.number)
        if process.session == child:
            family.add(process.number)
    me = os.getpid()
    family.update(number for number in parents.get(me, ()))
    todo = list(family)
    while todo:
        for number in parents.get(todo.pop(), ()):
            if number not in family:
                family.add(number)
                todo.append(number)
    return sorted(family)


def own_memory(number: int) -> int:
    """Bytes of memory that a process shares with no file: its anonymous part, what it inherited included."""
    try:
        with open("/proc/{}/statm".format(number), "rb") as file:
            fields = file.read().split()
        return (int(fields[1]) - int(fields[2])) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def beyond(child: int, memory: int, processes: int) -> Optional[str]:
    """Which limit the child and its like are beyond, if any."""
    family = descendants(child)
    if processes and len(family) > processes:
        return "processes"
    if memory:
        inherited = own_memory(os.getpid())
        used = sum(max(0, own_memory(number) - inherited) for number in family)
        if used > memory * _MARGIN:
            return "memory"
    return None


class Clock:
    """Says when a run has had its time, on a machine that others use as well.

    On a loaded machine a compile that takes 40 seconds alone takes 140, and calling that a hang would be a false
    verdict. So the limit is one on processor time, unless the run does nothing at all, or has had several times the
    limit of wall time.
    """

    PATIENCE = 4.0
    IDLE_SHARE = 0.02
    WINDOW = 1.0

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()
        self._past: List[Tuple[float, float]] = [(self._began, 0.0)]

    def is_up(self, child: int) -> bool:
        """Whether the child and its like have had their time. To be asked a few times a second."""
        now = time.monotonic()
        wall = now - self._began
        used = sum(cpu_seconds(number) for number in descendants(child))
        while len(self._past) > 1 and now - self._past[1][0] >= self.WINDOW:
            self._past.pop(0)
        since, before = self._past[0]
        self._past.append((now, used))
        if wall < self._seconds:
            return False
        idle = used - before < (now - since) * self.IDLE_SHARE
        return idle or used >= self._seconds * 0.9 or wall >= self._seconds * self.PATIENCE


def cpu_seconds(number: int) -> float:
    """Processor time of a process and of its children that have ended."""
    try:
        with open("/proc/{}/stat".format(number), "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return sum(int(field) for field in fields[11:15]) / TICKS
    except (OSError, IndexError, ValueError):
        return 0.0


def end_session(child: int, reap: bool) -> None:
    """Kill the child and all that it started, and wait until they are gone."""
    for attempt in range(200):
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        if reap and attempt == 0:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        _reap_all()
        # The list is only walked when there can be somebody: it costs milliseconds.
        if attempt == 0 and not _has_children():
            break
        left = [number for number in descendants(child) if number != child or reap]
        left = [number for number in left if _alive(number)]
        if not left:
            break
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.002)
    _reap_all()


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    except OSError:
        pass
    return True


def _alive(number: int) -> bool:
    try:
        with open("/proc/{}/stat".format(number), "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def _reap_all() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except OSError:
            return
