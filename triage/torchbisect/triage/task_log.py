"""The log of the task that a worker is at: one stream for all tasks, each with a file of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchbisect.containers.store.disk import disk_errors

LOG = "log.txt"


class TaskLog(io.TextIOBase):
    """A stream that writes into the log of the present task, and between two tasks to standard error.

    Tasks share build sources, which go on telling the first task's display of installs and of builds removed for want
    of room. So that display must not be bound to the file of a task that has ended.
    """

    def __init__(self) -> None:
        self._file: io.TextIOWrapper | None = None

    @contextmanager
    def of(self, folder: Path) -> Iterator[TaskLog]:
        """Write into a task's folder for as long as the context lasts. Raises ``DiskFull``."""
        with disk_errors(folder, option="--out"):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / LOG).open("a", encoding="utf-8", errors="backslashreplace")
        try:
            yield self
        finally:
            file, self._file = self._file, None
            file.close()

    def write(self, text: str, /) -> int:
        """Write text, and return its length."""
        return (self._file or sys.stderr).write(text)

    def flush(self) -> None:
        """Write out what is buffered."""
        (self._file or sys.stderr).flush()
