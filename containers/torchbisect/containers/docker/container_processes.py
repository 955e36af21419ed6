"""Processes in containers: their limits, and their three streams over the engine's connection."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import docker.errors
import docker.types
from docker.models.containers import Container

from torchbisect.containers.docker.engine import ENGINE_EXCEPTIONS, engine_errors, remove
from torchbisect.containers.process.processes import LINE_LIMIT, STDERR_LIMIT, LineTooLong, StreamTail

#: Added to standard error when the memory limit was reached, since nothing in the container can report it.
OUT_OF_MEMORY_MESSAGE = b"\nKilled: the container's limit on memory was reached (out of memory)\n"

_STDERR = 2
_SEND_PATIENCE = 60.0
_CHUNK = 1 << 16


#: The user and group of foreign code: nobody, on Debian and most other systems.
NOBODY = "65534:65534"
#: The only writable folder, in memory; compilers also run what they write there.
SCRATCH = "/tmp"


@dataclass(frozen=True)
class Confinement:
    """Limits of one container.

    Attributes:
        memory: bytes, with the files in the scratch folder; there is no swap.
        scratch: bytes of files in the scratch folder.
        files: the number of files in the scratch folder.
        processes: the number of processes and threads at a time.
        gpu: the number or UUID of the GPU that is let in; ``None`` for none.
        runtime: the engine's name of the runtime of all containers; ``None`` for the engine's default.
    """

    memory: int = 12 << 30
    scratch: int = 4 << 30
    files: int = 300_000
    processes: int = 1536
    gpu: str | None = None
    runtime: str | None = None

    def options(self, *, count_files: bool = True) -> dict[str, Any]:
        """Return the keyword arguments of ``containers.create`` that confine foreign code.

        The container has no network and no capabilities, gains none by set-uid programs, and runs as nobody.
        Only memory is writable. Memory, processes and files are limited.
        No log can fill the engine's disk. Podman can't count files in memory: without ``count_files`` the limit on
        memory alone bounds them.
        """
        scratch = f"rw,exec,nosuid,nodev,mode=1777,size={self.scratch}"
        if count_files:
            scratch += f",nr_inodes={self.files}"
        options: dict[str, Any] = {
            "network_mode": "none",
            "read_only": True,
            "tmpfs": {SCRATCH: scratch},
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "user": NOBODY,
            "mem_limit": self.memory,
            "memswap_limit": self.memory,
            "pids_limit": self.processes,
            "ipc_mode": "private",
            "shm_size": min(self.scratch, 1 << 30),
            "log_config": docker.types.LogConfig(type="none"),
            "ulimits": [
                docker.types.Ulimit(name="core", soft=0, hard=0),
                docker.types.Ulimit(name="nofile", soft=4096, hard=4096),
            ],
            "working_dir": SCRATCH,
        }
        if self.gpu is not None:
            options["device_requests"] = [docker.types.DeviceRequest(device_ids=[self.gpu], capabilities=[["gpu"]])]
        return options


class Streams:
    """The attached streams of one container, read in a thread.

    Without a terminal the engine sends frames: one byte for the stream, three zero bytes, four bytes for the length,
    and the data (Docker Engine API, "Attach to a container", stream format).
    """

    def __init__(self, container: Container, output: Callable[[bytes], None], errors: Callable[[bytes], None]) -> None:
        """Attach to a container that has not been started yet, so that none of its output is missed.

        Standard input is attached too, also where nothing is sent: the container ends with this connection.
        """
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self._holder: Any = container.attach_socket(params=wanted)
        # Over a Unix socket and TCP the raw socket is inside a file object; over TLS and SSH it is the object itself.
        self._socket: Any = getattr(self._holder, "_sock", self._holder)
        self._socket.settimeout(None)
        self._take = {1: output, _STDERR: errors}
        self.ended = threading.Event()
        self._on_end: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._pump, daemon=True, name="torchbisect-streams")

    def begin(self, on_end: Callable[[], None] = lambda: None) -> None:
        """Start reading."""
        self._on_end = on_end
        self._thread.start()

    def send(self, data: bytes) -> None:
        """Write to standard input. Raise ``BrokenPipeError`` if it is not read."""
        if self.ended.is_set():
            raise BrokenPipeError("the container has ended")
        done = threading.Timer(_SEND_PATIENCE, self.close)
        done.daemon = True
        done.start()
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise BrokenPipeError(f"the container doesn't take what it is sent ({error})") from error
        finally:
            done.cancel()

    def close(self) -> None:
        """Close the connection; the thread ends then."""
        with contextlib.suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._holder.close()
        # docker-py keeps the HTTP response, which has the connection, on the holder.
        with contextlib.suppress(OSError, AttributeError, ValueError):
            self._holder._response.close()

    def _pump(self) -> None:
        try:
            while header := self._exactly(8):
                stream, size = struct.unpack(">BxxxL", header)
                while size and (data := self._socket.recv(min(size, _CHUNK))):
                    size -= len(data)
                    self._take.get(stream, self._take[_STDERR])(data)
        except (OSError, ValueError):
            return
        finally:
            self.ended.set()
            self._on_end()

    def _exactly(self, size: int) -> bytes:
        """Return the next ``size`` bytes; none if the stream ends before."""
        got = b""
        while len(got) < size:
            data = self._socket.recv(size - len(got))
            if not data:
                return b""
            got += data
        return got


@contextlib.contextmanager
def held(container: Container) -> Iterator[None]:
    """Start a container under the watch, which ends it with this context or with this process; then remove it.

    Raise what the engine raises if it can't be started.
    """
    streams: Streams | None = None
    try:
        streams = Streams(container, _ignore, _ignore)
        container.start()
        streams.begin()
        yield
    finally:
        remove(container)
        if streams is not None:
            streams.close()


def _ignore(data: bytes) -> None:
    """Take output that is read elsewhere or by nobody."""


class DockerProcess:
    """A running container with its three streams held; see ``Process``. Used from one thread at a time."""

    def __init__(self, container: Container) -> None:
        """Start a container that was created with an open standard input. Raise ``MachineError`` if that fails."""
        self._container = container
        self._lines = threading.Condition()
        self._buffer = bytearray()
        self._searched = 0
        self._is_too_long = False
        self._tail = StreamTail(STDERR_LIMIT)
        self._status: int | None = None
        self._killed = False
        try:
            with engine_errors("starting a container"):
                self._streams = Streams(container, self._take, self._tail.add)
                container.start()
        except BaseException:
            remove(container)
            raise
        self._streams.begin(self._wake)

    def send(self, data: bytes) -> None:
        """Write to its standard input. Raise ``BrokenPipeError`` if it has ended or reads nothing for a minute."""
        if self._killed:
            raise BrokenPipeError("the container was ended")
        self._streams.send(data)

    def read_line(self, timeout: float) -> bytes | None:
        """Return the next line of its standard output, ``b""`` at the end, ``None`` after ``timeout`` seconds.

        Raise ``LineTooLong`` if more came than ``LINE_LIMIT`` bytes, which nobody read.
        """
        until = time.monotonic() + timeout
        with self._lines:
            while True:
                if self._is_too_long:
                    raise LineTooLong
                found = self._buffer.find(b"\n", self._searched)
                if found >= 0 or self._streams.ended.is_set():
                    size = found + 1 if found >= 0 else len(self._buffer)
                    line = bytes(self._buffer[:size])
                    del self._buffer[:size]
                    self._searched = 0
                    return line
                self._searched = len(self._buffer)
                left = until - time.monotonic()
                if left <= 0 or not self._lines.wait(left):
                    return None

    def errors(self) -> str:
        """Return the last part of its standard error."""
        return self._tail.text()

    def kill(self) -> int | None:
        """End the container and remove it; return the exit status. May be called twice."""
        if not self._killed:
            self._killed = True
            self._status, out_of_memory = kill_container(self._container)
            if out_of_memory:
                self._tail.add(OUT_OF_MEMORY_MESSAGE)
            self._streams.ended.wait(2.0)
            self._streams.close()
        return self._status

    def _take(self, data: bytes) -> None:
        with self._lines:
            self._buffer += b"" if self._is_too_long else data
            if len(self._buffer) > LINE_LIMIT:
                self._is_too_long = True
                self._buffer.clear()
            self._lines.notify_all()

    def _wake(self) -> None:
        with self._lines:
            self._lines.notify_all()


def kill_container(container: Container) -> tuple[int | None, bool]:
    """Kill a container that may have ended by itself, and remove it.

    Return its exit status, ``None`` if the engine could not tell, and true if it reached its limit on memory.
    """
    status: int | None = None
    out_of_memory = False
    try:
        with contextlib.suppress(docker.errors.APIError):
            container.kill()
        status = signal_status(int(container.wait(timeout=30)["StatusCode"]))
        container.reload()
        out_of_memory = bool(container.attrs["State"].get("OOMKilled"))
    except ENGINE_EXCEPTIONS:
        pass
    finally:
        remove(container)
    return status, out_of_memory


def signal_status(code: int) -> int:
    """Return an engine's exit code as a host process's: 128 plus a signal number becomes the negative signal number.

    A script that exits with such a code by itself can't be told from one that a signal ended.
    """
    return 128 - code if 128 < code < 128 + 65 else code
