"""A process on this machine with its streams held, and the killing of everything that it started.

The process runs a stranger's script. Each start gets a session of its own, so that one signal reaches every process
that stays in the session. It also gets a variable of its own, by which the processes that left the session are found.
A process that wiped its variables and lost its parent escapes. Only the container sandbox prevents that.

Owners are identified by the start time in ``/proc/PID/stat``, which never changes. psutil's ``create_time`` does not
fit: it adds the boot time, so setting the clock would make a living owner look dead and end its processes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from torchbisect.containers.process.guard import start_guard
from torchbisect.core.errors import MachineError

#: The variable that marks all processes of one start.
MARK = "TORCHBISECT_PROCESS"
#: The last bytes of standard error, this many, are kept.
STDERR_LIMIT = 64 * 1024
#: Bytes that one line on standard output may have. The largest answer of an agent has the output of two runs, of two
#: megabytes each, in which JSON writes a byte with up to six characters.
LINE_LIMIT = 64 * 1024 * 1024
_OWNER = re.compile(r"([^.]*)\.([^.]*)\.([0-9]{1,9})\.([^.]*)")
# A process that waits for a line is looked at every so many seconds; found stopped so many times, it has ended.
_LOOK_SECONDS = 2.0
_STOPPED_LOOKS = 5
_SEND_PATIENCE = 60.0
_ROUNDS = 50
_CHUNK = 1 << 16


class LineTooLong(ValueError):
    """A process sent a line of more than ``LINE_LIMIT`` bytes."""

    def __init__(self) -> None:
        super().__init__(f"a line has more than {LINE_LIMIT >> 20} MB")


class HostProcess:
    """A running command with its three streams held; used from one thread at a time."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path | str | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Start the command with exactly these variables and the mark. Raise ``MachineError`` if that fails.

        ``after`` is called once after the kill, to remove what was made for the process.
        """
        self._mark = new_mark()
        self._after = after
        self._process = spawn(command, environment, self._mark, directory)
        self._input: IO[bytes] = _opened(self._process.stdin)
        self._output: IO[bytes] = _opened(self._process.stdout)
        os.set_blocking(self._input.fileno(), False)
        os.set_blocking(self._output.fileno(), False)
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False
        self._tail = StreamTail(STDERR_LIMIT)
        self._drain = drain(_opened(self._process.stderr), self._tail.add)

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its group and session."""
        return self._process.pid

    def send(self, data: bytes) -> None:
        """Write to its standard input. Raise ``BrokenPipeError`` if it has ended or reads nothing for a minute."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._input.fileno(), view) :]
            except BlockingIOError:
                if not select.select([], [self._input], [], _SEND_PATIENCE)[1]:
                    raise BrokenPipeError("the process doesn't read what it is sent") from None
            except ValueError:
                raise BrokenPipeError("the process was ended") from None
            except OSError as error:
                raise BrokenPipeError(f"the process can't be sent anything ({error.strerror})") from error

    def read_line(self, timeout: float) -> bytes | None:
        """Return the next line of its standard output, ``b""`` at the end, ``None`` after ``timeout`` seconds.

        Raise ``LineTooLong`` if it has no end within ``LINE_LIMIT`` bytes; nothing can be read after that. A process
        that something keeps stopped (``SIGSTOP``) is at its end too.
        """
        until, stopped = time.monotonic() + timeout, 0
        while True:
            line = self._line()
            if line is not None:
                return line
            left = until - time.monotonic()
            if left <= 0 and timeout > 0:
                return None
            try:
                ready = select.select([self._output], [], [], min(max(left, 0.0), _LOOK_SECONDS))[0]
            except ValueError:  # closed by kill()
                self._ended = True
                continue
            if ready:
                self._read()
            elif left <= _LOOK_SECONDS:
                return None
            else:
                stopped = stopped + 1 if self._is_stopped() else 0
                self._ended |= stopped >= _STOPPED_LOOKS

    def _is_stopped(self) -> bool:
        with contextlib.suppress(psutil.Error):
            return psutil.Process(self._process.pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
        return False

    def errors(self) -> str:
        """Return the last part of its standard error."""
        if self._process.poll() is not None:
            self._drain.join(timeout=1.0)
        return self._tail.text()

    def kill(self) -> int | None:
        """End it and everything it started; return the exit status, negative for a signal."""
        kill_process_tree(self._process, self._mark)
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()
        self._drain.join(timeout=1.0)
        after, self._after = self._after, None
        if after:
            after()
        return self._process.returncode

    def stop(self, patience: float) -> int | None:
        """Close its standard input, which asks it to end; kill it after ``patience`` seconds."""
        with contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=patience)
        return self.kill()

    def _line(self) -> bytes | None:
        """Take a whole line from the buffer, or the rest of the buffer at the end of the stream."""
        found = self._buffer.find(b"\n", self._searched)
        if found < 0 and not self._ended:
            self._searched = len(self._buffer)
            return None
        size = found + 1 if found >= 0 else len(self._buffer)
        with memoryview(self._buffer) as view:
            line = bytes(view[:size])
        del self._buffer[:size]
        self._searched = 0
        return line

    def _read(self) -> None:
        try:
            data = os.read(self._output.fileno(), _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._buffer += data
        self._ended = not data
        if len(self._buffer) > LINE_LIMIT:
            self._buffer.clear()
            self._ended = True
            raise LineTooLong


class StreamTail:
    """The last bytes of a stream."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept = bytearray()
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        """Take more of the stream."""
        with self._lock:
            self._kept += data
            if len(self._kept) > 2 * self._size:
                del self._kept[: -self._size]

    def text(self) -> str:
        """Return the kept text; bytes that aren't UTF-8 are replaced."""
        with self._lock:
            return bytes(self._kept[-self._size :]).decode("utf-8", "replace")


def spawn(
    command: Sequence[str], environment: Mapping[str, str], mark: str, directory: Path | str | None
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, with pipes for its three streams and ``mark`` in its variables.

    Raise ``MachineError`` if it can't be started.
    """
    start_guard(MARK)
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, MARK: mark},
            cwd=directory,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        raise MachineError(f"{command[0]} can't be started: {error}") from error


def drain(stream: IO[bytes], take: Callable[[bytes], None]) -> threading.Thread:
    """Read a stream to its end in a thread, so that its writer never waits; the thread closes the stream."""

    def pump() -> None:
        with stream, contextlib.suppress(OSError, ValueError):
            while data := os.read(stream.fileno(), _CHUNK):
                take(data)

    thread = threading.Thread(target=pump, daemon=True, name="torchbisect-drain")
    thread.start()
    return thread


def kill_process_tree(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill a process, its group, its descendants and all that carry the mark, until none is found.

    A fork bomb starts processes faster than one round can kill them. So each round stops all that it finds, which then
    start no more, and kills them after that.
    """
    leader = process.pid
    running = process.poll() is None
    kin = _descendants(leader) if running else []
    if running:
        _signal_group(leader, signal.SIGSTOP)
        kin += _descendants(leader)
    _signal_group(leader, signal.SIGKILL)
    _kill(kin)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    for _ in range(_ROUNDS):
        _signal_group(leader, signal.SIGKILL)
        left = _marked(mark)
        if not left:
            return
        for one in left:
            with contextlib.suppress(psutil.Error):
                one.suspend()
        _kill(left + [child for one in left for child in _descendants(one.pid)])
        time.sleep(0.01)


def new_mark() -> str:
    """Return a mark for one start; it contains the name of this process (see ``owner``)."""
    return f"{owner()}.{uuid.uuid4().hex}"


def sweep_processes() -> int:
    """Kill processes that killed runs of torchbisect left on this machine, with all that descend from them.

    Return the number of those that carry a mark. A process that wiped its variables is found below the agent, which
    adopts it. Only this process-id namespace is looked at: from outside, a container's owner would look dead.
    """
    orphans = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if owner_is_dead(one.environ().get(MARK, "").rpartition(".")[0]):
                orphans.append(one)
    _kill(_stop_families(orphans))
    return len(orphans)


@functools.cache
def owner() -> str:
    """Return a name for this process: the boot of the machine, its process-id namespace, its id and its start time."""
    return f"{_boot()}.{_namespace()}.{_identity(os.getpid())}"


def owner_is_dead(owner: str) -> bool:
    """Return true if the named process has ended; false if that can't be known from this namespace.

    The name is of a process of this machine, which may have been restarted since.
    """
    found = _OWNER.fullmatch(owner)
    if not found:
        return False
    boot, namespace, number, start = found.groups()
    if boot != _boot():
        return True
    return namespace == _namespace() and _identity(int(number)) != f"{number}.{start}"


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "0"


def _namespace() -> str:
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return "0"


def _identity(pid: int) -> str:
    """Return a process id with its start time, by which a later process of the same id is told apart.

    A process that has ended and whose parent has not asked for its status counts as ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"{pid}.none" if not psutil.pid_exists(pid) else f"{pid}.0"
    # The name of the program is in brackets and may contain anything; the start time is the 20th field after it.
    fields = stat.rpartition(")")[2].split()
    return f"{pid}.none" if fields[0] in "ZX" else f"{pid}.{fields[19]}"


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise MachineError("a process was started without its streams")
    return stream


def _stop_families(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Stop processes and their descendants, so that none starts another or gets lost; return them all, none of ours."""
    ours = {os.getpid()}
    with contextlib.suppress(psutil.Error):
        ours |= {one.pid for one in psutil.Process().parents()}
    found: dict[int, psutil.Process] = {}
    new = list(processes)
    for _ in range(_ROUNDS):
        new = [one for one in new if one.pid not in ours and found.setdefault(one.pid, one) is one]
        for one in new:
            with contextlib.suppress(psutil.Error):
                one.suspend()
        new = [child for one in list(found.values()) for child in _descendants(one.pid)] if new else []
    return list(found.values())


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _marked(mark: str) -> list[psutil.Process]:
    """Return all live processes that carry the mark, without zombies."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def _kill(processes: list[psutil.Process]) -> None:
    """Kill processes and wait up to a second for their end: a killed process stays alive until it is scheduled."""
    for one in processes:
        with contextlib.suppress(psutil.Error):
            one.kill()
    until = time.monotonic() + 1
    while any(map(_is_alive, processes)) and time.monotonic() < until:
        time.sleep(0.002)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False
