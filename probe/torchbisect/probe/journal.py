"""The journal of a run: each finished question with its answer, one JSON line each.

A process may be killed at any moment, two may write at once, and the disk may fill up. So each line is written under
a lock, at the end of the file. A torn line is skipped when the file is read; the next one starts on a line of its own.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torchbisect.core.errors import DiskFull, InputError


class Journal:
    """Questions and answers in a file of JSON lines; with no file, in memory only. Threads may share one.

    Args:
        path: the file; made when the first answer is put, with its folders.

    Raises:
        InputError: the file is there and can't be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._answers: dict[str, Any] = {}
        self._read_to = 0
        self._guard = threading.Lock()
        self._refresh()

    def get(self, key: str) -> Any | None:
        """Return the answer to a question, even if another process wrote it; ``None`` if there is none yet."""
        if key not in self._answers:
            self._refresh()
        if key not in self._answers:
            return None
        return self._answers[key]

    def put(self, key: str, value: Any) -> None:
        """Keep an answer, which outlives this process however that ends.

        The line isn't forced onto the disk, because that takes as long as a cheap question. A loss of power can lose
        the answers of the last seconds, which are then asked again.

        Args:
            value: anything that JSON can hold and that isn't ``None``.

        Raises:
            DiskFull: there is no room; the earlier answers are kept.
            InputError: the file can't be written to.
        """
        self._answers[key] = value
        if self.path is None:
            return
        line = json.dumps({"key": key, "value": value}, ensure_ascii=True).encode() + b"\n"
        with _os_errors_explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
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
        with path.open("rb") as file:
            file.seek(self._read_to)
            data = file.read()
        # A last line without its end may still be in the writing, so it is read again the next time.
        whole = data.rfind(b"\n") + 1
        self._read_to += whole
        for line in data[:whole].splitlines():
            entry = _entry(line)
            if entry is not None:
                self._answers[entry[0]] = entry[1]


def _entry(line: bytes) -> tuple[str, Any] | None:
    """Return the question and answer on a line, or ``None`` if it is torn or has another form."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("key"), str) or entry.get("value") is None:
        return None
    return entry["key"], entry["value"]


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
