"""Progress of an install: the bytes that the installer has written, of those that it will write."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from torchbisect.containers.store.disk import format_bytes
from torchbisect.containers.venv.install_size import InstallSize
from torchbisect.core.retry import Notify

_SECONDS = 1.0
_WRITTEN = re.compile(r"^wchar: (\d+)$", re.MULTILINE)
#: The most that is said before the end: the size on disk is worked out from that of the download.
_MOST = 99


def written_bytes(process: int) -> int | None:
    """Return the bytes that a process has written; ``None`` where the system does not tell."""
    try:
        found = _WRITTEN.search(Path(f"/proc/{process}/io").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return int(found[1]) if found else None


@dataclass
class InstallProgress:
    """Tells how far an install has come, about once a second while its process is given.

    uv unpacks a wheel while it fetches it, and links the files into the environment. So the bytes that it writes are
    those of the files, each once.

    Attributes:
        title: the words before the figures.
        size: what the install fetches and writes.
        notify: receives the line.
        written: returns the bytes that a process has written.
    """

    title: str
    size: InstallSize
    notify: Notify
    written: Callable[[int], int | None] = written_bytes
    _said: float = field(default_factory=time.monotonic)

    def show(self, process: int) -> None:
        """Tell how far the process has come, unless that was told a moment ago."""
        now = time.monotonic()
        done = self.written(process) if now - self._said >= _SECONDS and self.size.disk > 0 else None
        if done is None:
            return
        self._said = now
        percent = min(100 * done // self.size.disk, _MOST)
        self.notify(f"{self.title}, {format_bytes(self.size.download)} to download: about {percent} % done")
