"""Room on disk: how much there is, and the one place that turns the system's refusals into errors with a clear line."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchbisect.core.errors import DiskFull, InputError, MachineError

#: What the C library's ``strerror`` says of a full disk or a spent quota; programs in between pass these words on.
DISK_FULL_PHRASES = ("no space left on device", "disk quota exceeded", "os error 28", "os error 122")

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def is_disk_full_message(text: str) -> bool:
    """Whether a program's message is about a full disk."""
    low = text.lower()
    return any(words in low for words in DISK_FULL_PHRASES)


def disk_full(where: Path | str) -> DiskFull:
    """The error for a disk that has no room left, with how much there is and what to do."""
    try:
        free = f"{format_bytes(free_bytes(Path(where)))} free"
    except OSError:
        free = "no room"
    return DiskFull(
        f"the disk of {where} is full ({free}): free some space there, or name another place with --cache-dir, "
        "then give the same command again"
    )


@contextmanager
def disk_errors(where: Path | str) -> Iterator[None]:
    """Turn the system's refusals to write at ``where`` into errors that a user can act on.

    Raises:
        DiskFull: for a full disk or a spent quota.
        MachineError: where writing isn't allowed, something else is in the way, or the device fails.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(where) from error
        if error.errno in _REFUSED:
            raise MachineError(
                f"{where} can't be written to ({os.strerror(error.errno)}): check who owns it"
            ) from error
        raise MachineError(f"{where} can't be written to ({error}): name another place with --cache-dir") from error


def free_bytes(where: Path) -> int:
    """The bytes that this user can still write on the filesystem of ``where``, or of its nearest parent that exists."""
    while not where.exists() and where != where.parent:
        where = where.parent
    return shutil.disk_usage(where).free


def folder_size(folder: Path) -> int:
    """The bytes that a folder's files take on disk, each file once however many names it has in there."""
    seen: set[tuple[int, int]] = set()
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(place, name))
                if (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    size += status.st_blocks * 512
    return size


def writable_directory(where: Path, *, option: str) -> Path:
    """Make a directory if it isn't there and try that it can be written to.

    Args:
        where: the directory.
        option: the command-line option or variable that names it, for the message.

    Raises:
        InputError: if it can't be a directory that this user writes to.
        DiskFull: if there is no room even for an empty file.
    """
    trial = where / f".trial-{os.getpid()}"
    try:
        where.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(b"x")
        trial.unlink()
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(where) from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"{where} can't be written to ({reason}): name another place with {option}") from error
    return where


def parse_size(text: str) -> int:
    """Bytes from what people write: ``20GB``, ``500 MB``, ``1.5T``; units are those of ``format_bytes``, powers of 1000.

    Raises:
        ValueError: it is no size above nothing.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", text.lower())
    size = int(float(found[1]) * 1000 ** " kmgt".index(found[2] or " ")) if found else 0
    if size <= 0:
        raise ValueError(f"{text!r} is no size: write it as 20GB or 500MB")
    return size


def format_bytes(size: float) -> str:
    """A number of bytes as people read it: ``846 MB``, ``6.1 GB``."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
