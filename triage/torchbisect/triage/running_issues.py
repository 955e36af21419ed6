"""The issues that are run at this moment, and how far each of them is, for the display."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from torchbisect.core.printable import one_line
from torchbisect.triage.jobs import IssueTask
from torchbisect.triage.task_log import LOG

_TAIL_BYTES = 2000


class RunningIssues:
    """The issues at work; several threads may use it.

    Args:
        total: the number of issues to run.
    """

    def __init__(self, total: int) -> None:
        self._total, self._ended = total, 0
        self._logs: dict[str, Path] = {}
        self._lock = threading.Lock()

    def start(self, task: IssueTask) -> None:
        """Add an issue whose run begins."""
        with self._lock:
            self._logs[task.job.name] = task.options.out / LOG

    def end(self, name: str) -> None:
        """Remove an issue whose run has ended."""
        with self._lock:
            self._ended += 1
            self._logs.pop(name, None)

    def text(self) -> str:
        """Return how many issues are done, and for each issue at work the last line of its log."""
        with self._lock:
            ended, logs = self._ended, dict(self._logs)
        running = [f"{name} ({last})" if (last := last_line(log)) else name for name, log in logs.items()]
        return "; ".join([f"{ended} of {self._total} done", *running])


def last_line(log: Path) -> str:
    """Return the last line of a log as one short line of plain text; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return one_line(lines[-1].strip(" …·!"), 160) if lines else ""
