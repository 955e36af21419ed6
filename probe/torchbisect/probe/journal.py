"""The journal of a run: each finished question with its answer, one JSON line each.

A process may be killed at any moment, two may write at once, and the disk may fill up. So each line is written under
a lock, at the end of the file. The next line after a torn one starts on a line of its own.

A journal is also a file that others may have written to. A line that is torn, too long, no JSON, or of a shape that
its question does not have is ignored, and a message names the line. Its question is asked again.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from torchbisect.core.decode import DEFAULT_LIMITS, DecodeError, decode, read_object
from torchbisect.core.errors import DiskFull, InputError
from torchbisect.core.regular_file import open_own_file
from torchbisect.core.retry import Notify

Answer = TypeVar("Answer")

#: Bytes of the file, whose answers are held in memory; a whole triage of 1,000 issues writes a tenth.
MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class _Entry:
    """One line of the file."""

    key: str
    value: Any


class Journal:
    """Questions and answers in a file of JSON lines; with no file, in memory only. Threads may share one.

    Args:
        path: the file; made when the first answer is put, with its folders.

    Raises:
        InputError: the file is there and can't be read, or it has more than ``MOST_BYTES``.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._answers: dict[str, Any] = {}
        self._lines: dict[str, int] = {}
        self._read_to = 0
        self._line = 0
        self._ignored: list[str] = []
        self._notify: Notify = self._ignored.append
        self._guard = threading.Lock()
        self._refresh()

    def tell(self, notify: Notify) -> None:
        """Name each ignored line to ``notify``, also those that were ignored before this call."""
        self._notify = notify
        while self._ignored:
            notify(self._ignored.pop(0))

    def get(self, key: str, read: Callable[[Any], Answer] = lambda value: value) -> Answer | None:
        """Return the answer to a question, even if another process wrote it; ``None`` if there is none yet.

        ``read`` turns the value that was put into the answer. It raises ``DecodeError`` for a value of another shape,
        which is then ignored.
        """
        if key not in self._answers:
            self._refresh()
        if key not in self._answers:
            return None
        try:
            return read(self._answers[key])
        except DecodeError as error:
            self._answers.pop(key, None)
            self._ignore(self._lines.get(key, 0), str(error))
            return None

    def put(self, key: str, value: Any) -> None:
        """Keep an answer, which outlives this process however that ends.

        The line isn't forced onto the disk, because that takes as long as a cheap question. A loss of power can lose
        the answers of the last seconds, which are then asked again.

        Args:
            value: anything that JSON can hold and that isn't ``None``.

        Raises:
            DiskFull: there is no room; the earlier answers are kept.
            InputError: the file can't be written to, or is full.
        """
        self._answers[key] = value
        self._lines.pop(key, None)
        if self.path is None:
            return
        line = json.dumps({"key": key, "value": value}, ensure_ascii=True).encode() + b"\n"
        with _os_errors_explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = open_own_file(self.path, os.O_RDWR | os.O_APPEND, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                _check_size(self.path, os.fstat(file).st_size + len(line))
                _append(file, line)
            finally:
                os.close(file)

    def _refresh(self) -> None:
        """Read what was added to the file since the last time."""
        if self.path is None:
            return
        with self._guard, _os_errors_explained(self.path):
            self._read_on(self.path)

    def _read_on(self, path: Path) -> None:
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return
        if size <= self._read_to:
            return
        _check_size(path, size)
        with path.open("rb") as file:
            file.seek(self._read_to)
            while size := self._read_line(file):
                self._read_to += size

    def _read_line(self, file: IO[bytes]) -> int:
        """Read one line, and return its bytes; 0 if its end is not there, because it may still be in the writing."""
        line = part = file.readline(DEFAULT_LIMITS.size)
        size = len(line)
        while part and not part.endswith(b"\n"):
            part = file.readline(DEFAULT_LIMITS.size)
            size += len(part)
        if not part:
            return 0
        self._line += 1
        if not line.isspace():
            self._keep(line if size == len(line) else None)
        return size

    def _keep(self, line: bytes | None) -> None:
        """Keep the answer on a line; ``None`` for one that is too long."""
        try:
            if line is None:
                raise DecodeError(f"it has more than {DEFAULT_LIMITS.size} bytes")
            entry = decode(_Entry, read_object(line), "line")
            if entry.value is None:
                raise DecodeError("it has no answer")
        except DecodeError as error:
            self._ignore(self._line, str(error))
        else:
            self._answers[entry.key] = entry.value
            self._lines[entry.key] = self._line

    def _ignore(self, line: int, reason: str) -> None:
        name = f"{self.path.parent.name}/{self.path.name}" if self.path else "the journal"
        self._notify(f"{name}, line {line} is ignored, and its question is asked again: {reason}")


def _check_size(path: Path, size: int) -> None:
    if size > MOST_BYTES:
        raise InputError(
            f"{path}: the journal has more than {MOST_BYTES >> 30} GiB: remove it, and its questions are asked again"
        )


def _append(file: int, line: bytes) -> None:
    """Append a whole line or nothing, on a line of its own even after a torn one."""
    size = os.lseek(file, 0, os.SEEK_END)
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line
    try:
        written = 0
        while written < len(line):
            written += os.write(file, line[written:])
    except OSError:
        os.ftruncate(file, size)
        raise


@contextmanager
def _os_errors_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFull(
                f"{path}: no room for the journal; free some space, then give the same command again"
            ) from error
        raise InputError(f"{path}: the journal can't be used: {error.strerror or error}") from error
