"""A process on this machine with its streams held, and the killing of everything that came of it.

What runs here is a stranger's script or something that runs one. Each start gets a session of its own, so that one
signal reaches all that didn't leave it, and a variable of its own in the environment, by which those that did leave
are found. A process that has also wiped its environment and lost its parent escapes: this much a plain process can
promise, and no more; the container sandbox promises the rest.
"""

from __future__ import annotations

import contextlib
import functools
import os
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

from torchbisect.core.errors import MachineError

#: The variable that marks all processes that came of one start.
MARK = "TORCHBISECT_PROCESS"

#: Bytes of standard error that are kept, the last ones.
STDERR_LIMIT = 64 * 1024

#: Bytes that one line on standard output may have; the agent's largest answers are a small part of it.
LINE_LIMIT = 256 * 1024 * 1024

_SEND_PATIENCE = 60.0
_ROUNDS = 50
_CHUNK = 1 << 16


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
        """
        Args:
            command: the program and its arguments.
            environment: all its variables; the mark is added.
            directory: where it starts; its own folder is never the user's by accident, so callers name one.
            after: called once when it has been killed, to take away what was made for it.

        Raises:
            MachineError: if it can't be started.
        """
        self._mark = new_mark()
        self._after = after
        self._process = spawn(command, environment, self._mark, directory)
        self._input: IO[bytes] = _held(self._process.stdin)
        self._output: IO[bytes] = _held(self._process.stdout)
        os.set_blocking(self._input.fileno(), False)
        os.set_blocking(self._output.fileno(), False)
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False
        self._tail = StreamTail(STDERR_LIMIT)
        self._drain = drain(_held(self._process.stderr), self._tail.add)

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its group and session."""
        return self._process.pid

    def send(self, data: bytes) -> None:
        """Write to its standard input.

        Raises:
            BrokenPipeError: if it has gone, or hasn't read for a minute.
        """
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._input.fileno(), view) :]
            except BlockingIOError:
                if not select.select([], [self._input], [], _SEND_PATIENCE)[1]:
                    raise BrokenPipeError("the process doesn't read what it is sent") from None
            except ValueError:
                raise BrokenPipeError("the process was ended") from None

    def read_line(self, timeout: float) -> bytes | None:
        """The next line of its standard output; ``b""`` at its end, ``None`` when ``timeout`` seconds pass first."""
        until = time.monotonic() + timeout
        while True:
            line = self._line()
            if line is not None:
                return line
            left = until - time.monotonic()
            if left <= 0 and timeout > 0:
                return None
            try:
                ready = select.select([self._output], [], [], max(left, 0.0))[0]
            except ValueError:  # closed by kill()
                self._ended = True
                continue
            if not ready:
                return None
            self._read()

    def errors(self) -> str:
        """The last part of what it wrote to standard error."""
        if self._process.poll() is not None:
            self._drain.join(timeout=1.0)
        return self._tail.text()

    def kill(self) -> int | None:
        """End it and all it started; returns the exit status, the negative number of the signal if one ended it."""
        kill_process_tree(self._process, self._mark)
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()
        self._drain.join(timeout=1.0)
        after, self._after = self._after, None
        if after:
            after()
        return self._process.returncode

    def _line(self) -> bytes | None:
        """A whole line out of the buffer, or at the end what is left there."""
        found = self._buffer.find(b"\n", self._searched)
        if found < 0 and not self._ended:
            self._searched = len(self._buffer)
            return None
        size = found + 1 if found >= 0 else len(self._buffer)
        line = bytes(self._buffer[:size])
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
        if len(self._buffer) > LINE_LIMIT:
            self._tail.add(b"\na line of more than 256 MB came on standard output: the process was ended\n")
            self._buffer.clear()
            data = b""
        self._ended = not data


class StreamTail:
    """The last bytes of a stream, however long it was."""

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
        """What was kept; bytes that aren't UTF-8 are replaced."""
        with self._lock:
            return bytes(self._kept[-self._size :]).decode("utf-8", "replace")


def spawn(
    command: Sequence[str], environment: Mapping[str, str], mark: str, directory: Path | str | None
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, with pipes for its three streams and ``mark`` in its environment.

    Raises:
        MachineError: if it can't be started.
    """
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
    """Read a stream to its end in a thread, so that its writer never has to wait; the thread closes it."""

    def pump() -> None:
        with stream:
            while True:
                try:
                    data = os.read(stream.fileno(), _CHUNK)
                except (OSError, ValueError):
                    return
                if not data:
                    return
                take(data)

    thread = threading.Thread(target=pump, daemon=True, name="torchbisect-drain")
    thread.start()
    return thread


def kill_process_tree(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill a process, its group, its descendants and whoever carries the mark, until a look round finds none.

    A fork bomb makes new ones faster than a single look can kill them: all that are found are stopped first, so that
    they make no more, and killed after.
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
    """A mark for one start, which also says who starts: this process, by its namespace, number and time of birth."""
    return f"{owner()}.{uuid.uuid4().hex}"


def sweep_processes() -> int:
    """Kill what runs of torchbisect that were killed themselves left running here; returns how many that were.

    Only processes that this one's namespace numbers are looked at: a container's owner seems dead from outside it.
    """
    orphans = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if owner_is_dead(one.environ().get(MARK, "").rpartition(".")[0]):
                orphans.append(one)
    _kill(orphans)
    return len(orphans)


@functools.cache
def owner() -> str:
    """This process as others may name it: its namespace of process numbers, its number and its time of birth."""
    return f"{_namespace()}.{_identity(os.getpid())}"


def owner_is_dead(owner: str) -> bool:
    """Whether the process of this name, of this namespace, is no more; ``False`` where that can't be known."""
    namespace, _, identity = owner.partition(".")
    number = identity.partition(".")[0]
    return number.isdigit() and namespace == _namespace() and _identity(int(number)) != identity


def _namespace() -> str:
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return "0"


def _identity(pid: int) -> str:
    """A process's number and the tick it was born at, by which it is told from a later one of the same number."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"{pid}.none" if not psutil.pid_exists(pid) else f"{pid}.0"
    # The name of the program stands in brackets and may hold anything; the birth is the 20th field after it.
    return f"{pid}.{stat.rpartition(')')[2].split()[19]}"


def _held(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise MachineError("a process was started without its streams")
    return stream


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _marked(mark: str) -> list[psutil.Process]:
    """All live processes that carry the mark, those that already wait to be reaped left out."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except (psutil.Error, OSError):
            continue
    return found


def _kill(processes: list[psutil.Process]) -> None:
    for one in processes:
        with contextlib.suppress(psutil.Error):
            one.kill()
