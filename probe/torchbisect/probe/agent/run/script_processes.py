"""List, measure and kill the processes that a script started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from typing import Dict, List, Optional, Tuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
END_SECONDS = 30.0  # for all processes of a run to end once they are killed
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


def count_all() -> int:
    """Return the number of processes that are seen here, which is quick however many there are."""
    return sum(map(str.isdigit, os.listdir("/proc")))


def signal_group(child: int, number: int) -> None:
    """Send a signal to all processes of a child's group, if there still are any."""
    with contextlib.suppress(OSError):
        os.killpg(child, number)


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


def shared_memory(family: List[int]) -> int:
    """Return the bytes of memory that processes share and that no file on a disk backs, each byte counted once.

    The cheap figure of each process counts what several have several times. The exact one is read only if it matters.
    """
    most = max([_kilobytes(number, "status", b"RssShmem:") for number in family] or [0])
    exact = sum(_kilobytes(number, "smaps_rollup", b"Pss_Shmem:") for number in family) if most > 1 << 18 else most
    return max(most, exact, _memory_files(family) >> 10) << 10


def _kilobytes(number: int, file: str, name: bytes) -> int:
    try:
        with open("/proc/{}/{}".format(number, file), "rb") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
    except OSError:
        return 0


def _memory_files(family: List[int]) -> int:
    """Return the bytes of the open files that lie in memory and have no name (``memfd_create``)."""
    found = {}
    for number in family:
        place = "/proc/{}/fd".format(number)
        with contextlib.suppress(OSError):
            for name in os.listdir(place):
                with contextlib.suppress(OSError):
                    if os.readlink(os.path.join(place, name)).startswith(("/memfd:", "/dev/shm/")):
                        status = os.stat(os.path.join(place, name))
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(found.values())


def exceeded_limit(family: List[int], memory: int, processes: int, tasks: int) -> Optional[str]:
    """Return the limit that a child's family exceeds: ``processes``, ``threads`` or ``memory``; ``None`` for none.

    Args:
        family: as ``family_of`` returns it.
        memory: bytes of memory beyond what was inherited, of all of them together; 0 for no limit.
        processes: the number of processes; 0 for no limit.
        tasks: the number of threads of all of them.
    """
    if processes and len(family) > processes:
        return "processes"
    if sum(map(_thread_count, family)) > tasks:
        return "threads"
    if memory:
        inherited = private_memory(os.getpid())
        used = sum(max(0, private_memory(number) - inherited) for number in family)
        if used + shared_memory(family) > memory * _MARGIN:
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

    def is_expired(self, family: List[int]) -> bool:
        """Return True if a child's family has used up its time. Call this a few times a second."""
        now = time.monotonic()
        wall = now - self._began
        used = sum(cpu_seconds(number) for number in family)
        while len(self._samples) > 1 and now - self._samples[1][0] >= self.IDLE_WINDOW:
            self._samples.pop(0)
        since, before = self._samples[0]
        self._samples.append((now, used))
        if wall < self._seconds:
            return False
        # One that waits for a processor is not idle, however little it gets of it.
        waits = any(_stat(number)[:1] in ([b"R"], [b"D"]) for number in family)
        idle = not waits and used - before < (now - since) * self.IDLE_SHARE
        return idle or used >= self._seconds * 0.9 or wall >= self._seconds * self.WALL_FACTOR


def cpu_seconds(number: int) -> float:
    """Return the processor seconds of a process and of its children that have ended."""
    return sum(int(field) for field in _stat(number)[11:15]) / TICKS


def end_family(child: int, is_running: bool) -> bool:
    """Kill all processes that the child started, and the child if it ``is_running``; wait until they have ended.

    Returns:
        False if some have not ended within ``END_SECONDS``. The agent must end then, and with it its container: no
        later run may meet them.
    """
    began, pause, killed = time.monotonic(), 0.002, False
    while True:
        signal_group(child, signal.SIGKILL)
        if is_running and not killed:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        killed = True
        _reap_all()
        # Listing the processes costs milliseconds, so it is skipped where no process can be left.
        if not _has_children():
            return True
        left = [number for number in family_of(child) if number != child or is_running]
        left = [number for number in left if _stat(number)[:1] not in ([], [b"Z"])]
        if not left:
            _reap_all()
            return True
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        # Thousands of processes take seconds to end, all the more where other programs work.
        if time.monotonic() - began > END_SECONDS:
            return False
        time.sleep(pause)
        pause = min(pause * 1.2, 0.05)


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
