"""``torchbisect`` as a user runs it: the installed command, in a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("torchbisect")


@dataclass(frozen=True)
class Tool:
    """The command in one folder, with a cache that may outlive it.

    Attributes:
        folder: where it is typed.
        cache: ``--cache-dir``.
    """

    folder: Path
    cache: Path

    def write(self, source: str, name: str = "repro.py") -> str:
        """Write a script into the folder; returns its name."""
        (self.folder / name).write_text(source, encoding="utf-8")
        return name

    def run(self, *words: str, timeout: float = 1100) -> subprocess.CompletedProcess[str]:
        """Type it and wait for its end."""
        return subprocess.run(
            self._typed(words),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def stopped(
        self, *words: str, at: Callable[[str], bool], by: signal.Signals, timeout: float = 600
    ) -> tuple[int, str]:
        """Type it, and send a signal as soon as a line of its standard error says ``at``.

        Returns the exit status and standard error. A kill is sent to that one process alone, as the kernel's
        out-of-memory killer would.
        """
        process = subprocess.Popen(
            self._typed(words),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        watchdog = threading.Timer(timeout, process.kill)
        watchdog.start()
        lines: list[str] = []
        sent = False
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if not sent and at(line):
                os.kill(process.pid, by)
                sent = True
        status = process.wait()
        watchdog.cancel()
        assert sent, "".join(lines)
        return status, "".join(lines)

    def _typed(self, words: tuple[str, ...]) -> list[str]:
        """The whole command line; the cache is named before the script, after which words are the script's."""
        return [str(COMMAND), *words[:1], "--cache-dir", str(self.cache), *words[1:]]

    @property
    def out(self) -> Path:
        """The folder of the results."""
        return self.folder / "torchbisect-out"

    @property
    def report(self) -> dict[str, Any]:
        """The last report."""
        found: dict[str, Any] = json.loads((self.out / "report.json").read_text())
        return found

    @property
    def asked(self) -> list[str]:
        """The key of every question in the journal, in order."""
        return [json.loads(line)["key"] for line in (self.out / "journal.jsonl").read_text().splitlines()]

    def python(self, version: str) -> Path:
        """The Python of a release's environment."""
        return next(iter(self.cache.glob(f"venvs/torch-{version}-*/bin/python")))


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Return the command in an empty folder, with an empty cache and the torch that is installed beside it."""
    return Tool(tmp_path, tmp_path / "cache")
