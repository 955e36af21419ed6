"""Open files of a folder without leaving it: regular files only, and no link that leads outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_inside(root: Path, path: Path) -> BinaryIO:
    """Open a regular file whose path, with every link resolved, lies below a folder that has no link in its own path.

    Raises ``OSError`` for everything else; it never waits, as an open of a FIFO does.
    """
    found = Path(os.path.realpath(path))
    if root not in found.parents:
        raise PermissionError(f"{path} leads outside of {root}")
    number = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(number, "rb")
    # A folder on the way may have become a link since its path was resolved.
    opened = Path(os.path.realpath(f"/proc/self/fd/{number}")) if os.path.isdir("/proc/self/fd") else found
    if not stat.S_ISREG(os.fstat(number).st_mode) or root not in opened.parents:
        file.close()
        raise PermissionError(f"{path} is no regular file below {root}")
    return file


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file, through links if there are any. Raises ``OSError`` for a FIFO, a device or a folder."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(number).st_mode
    if not stat.S_ISREG(kind):
        os.close(number)
        raise IsADirectoryError(f"{path} is a folder") if stat.S_ISDIR(kind) else PermissionError("not a regular file")
    return os.fdopen(number, "rb")
