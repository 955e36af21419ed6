"""Commands that run to their end: with a time limit, limited output, and none of the user's secrets."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchbisect.containers.process.processes import drain, kill_process_tree, new_mark, spawn
from torchbisect.core.timing import timed

#: Bytes of each output stream that are kept: the first half and the last.
OUTPUT_LIMIT = 1 << 20

#: The user's variables that a repro gets: they describe how this machine computes, and nothing about the user.
PASSED_VARIABLES = (
    "PATH",
    "LD_LIBRARY_PATH",
    "CC",
    "CXX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "NVPL_BLAS_DEBUG_CPU_TYPE",
    "NUMEXPR_NUM_THREADS",
    "SYSTEMROOT",
    "TZ",
)

#: Seconds between checks of the time and of ``cancel``.
_POLL = 0.1


@dataclass(frozen=True)
class Completed:
    """A command that has ended, with its output, cut to the limit, and its wall time.

    ``status`` is the exit status, the negative signal number if a signal ended it, ``None`` if it timed out.
    """

    status: int | None
    output: str
    errors: str
    seconds: float

    @property
    def timed_out(self) -> bool:
        """True if the command was ended because its time was up."""
        return self.status is None


class Cancelled(Exception):
    """The caller asked for the work to stop before it was done."""


def clean_environment(
    home: Path | str, extra: Mapping[str, str] | None = None, *, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables of a repro's process: a few of the user's, its own folders, and ``extra``.

    Only ``extra``, which wins, can bring in a secret, a ``PYTHON*`` or a ``TORCH*`` variable. A verdict must not depend
    on the user's shell. ``home`` is an empty folder, used as home and as temporary folder. ``base`` has the variables
    to select from, by default the process's own.
    """
    own = os.environ if base is None else base
    environment = {name: own[name] for name in PASSED_VARIABLES if name in own}
    environment.setdefault("PATH", os.defpath)
    environment.update(HOME=str(home), TMPDIR=str(home), LANG="C.UTF-8", LC_ALL="C.UTF-8", USER="torchbisect")
    environment.update(extra or {})
    return environment


def output_of(command: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None) -> str:
    """Return the output of a trusted program; empty if it can't be started, fails or takes longer."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=timeout, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


class CappedText:
    """The beginning and the end of a stream, with a line between them that gives the length of the gap."""

    def __init__(self, size: int) -> None:
        self._half = max(size // 2, 1)
        self._head = bytearray()
        self._end = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take more of the stream."""
        room = self._half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._end += data[max(room, 0) :]
        surplus = len(self._end) - self._half
        if surplus > self._half or (surplus > 0 and len(data) >= self._half):
            del self._end[:surplus]
            self._left_out += surplus

    def text(self) -> str:
        """Return the kept text; bytes that aren't UTF-8 are replaced."""
        surplus = max(len(self._end) - self._half, 0)
        end = bytes(self._end[surplus:])
        if not self._left_out + surplus:
            return (bytes(self._head) + end).decode("utf-8", "replace")
        gap = f"\n[... {self._left_out + surplus} bytes left out ...]\n"
        return bytes(self._head).decode("utf-8", "replace") + gap + end.decode("utf-8", "replace")


@timed("process", "command")
def run_command(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path | str | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    cap: int = OUTPUT_LIMIT,
    on_errors: Callable[[bytes], None] | None = None,
    on_wait: Callable[[int], None] | None = None,
) -> Completed:
    """Run a command until it ends or its time is up, then kill all processes that it left.

    Args:
        command: the program and its arguments.
        environment: all its variables.
        directory: its working directory.
        timeout: seconds; ``None`` for no limit.
        cancel: ends it early, with ``Cancelled``.
        cap: bytes of each stream that are kept.
        on_errors: given the chunks of standard error as they come.
        on_wait: given the process id again and again while the command runs.

    Raise ``MachineError`` if the command can't be started.
    """
    begun = time.monotonic()
    mark = new_mark()
    output, errors = CappedText(cap), CappedText(cap)

    def take_errors(data: bytes) -> None:
        errors.add(data)
        if on_errors:
            on_errors(data)

    process = spawn(command, environment, mark, directory)
    try:
        if process.stdin:
            process.stdin.close()
        pairs = ((process.stdout, output.add), (process.stderr, take_errors))
        drains = [drain(stream, take) for stream, take in pairs if stream is not None]
        in_time = _wait(process, None if timeout is None else begun + timeout, cancel, on_wait)
    finally:
        kill_process_tree(process, mark)
    for thread in drains:
        thread.join(timeout=2.0)
    status = process.returncode if in_time else None
    return Completed(status, output.text(), errors.text(), time.monotonic() - begun)


def _wait(
    process: subprocess.Popen[bytes],
    until: float | None,
    cancel: threading.Event | None,
    on_wait: Callable[[int], None] | None,
) -> bool:
    """Wait for a process; return true if it ended before ``until``. Raise ``Cancelled`` if ``cancel`` was set."""
    while process.poll() is None:
        if on_wait:
            on_wait(process.pid)
        if cancel is not None and cancel.is_set():
            raise Cancelled
        if until is not None and time.monotonic() > until:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_POLL)
    return True
