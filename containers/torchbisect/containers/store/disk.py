"""Room on disk, and clear errors for writes that the system refuses."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchbisect.core.errors import DiskFull, InputError, MachineError
from torchbisect.core.folders import walk_folder

#: Texts of the C library's ``strerror`` for a full disk or a spent quota, as other programs repeat them.
DISK_FULL_PHRASES = ("no space left on device", "disk quota exceeded", "os error 28", "os error 122")

#: The bytes of the largest size that can be asked for; no filesystem is larger.
_LARGEST = 1e18
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def is_disk_full_message(text: str) -> bool:
    """Return true if a program's message is about a full disk."""
    low = text.lower()
    return any(words in low for words in DISK_FULL_PHRASES)


def disk_full(where: Path | str, *, option: str = "--cache-dir") -> DiskFull:
    """Return the error for a full disk, with the free bytes and what to do; ``option`` names another place."""
    try:
        free = f"{format_bytes(free_bytes(Path(where)))} free"
    except OSError:
        free = "no room"
    return DiskFull(
        f"the disk of {where} is full ({free}): free some space there, or name another place with {option}, "
        "then give the same command again"
    )


@contextmanager
def disk_errors(where: Path | str, *, option: str = "--cache-dir") -> Iterator[None]:
    """Turn the system's refusals to write at ``where`` into errors that a user can act on.

    Raise ``DiskFull`` for a full disk or a spent quota. Raise ``MachineError`` if writing isn't allowed, something else
    is in the way, or the device fails.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(where, option=option) from error
        if error.errno in _REFUSED:
            raise MachineError(
                f"{where} can't be written to ({os.strerror(error.errno)}): check who owns it, or name another place "
                f"with {option}"
            ) from error
        raise MachineError(f"{where} can't be written to ({error}): name another place with {option}") from error


def free_bytes(where: Path) -> int:
    """Return the bytes that this user can write on the filesystem of ``where``, or of its nearest parent."""
    while not where.exists() and where != where.parent:
        where = where.parent
    return shutil.disk_usage(where).free


def folder_size(folder: Path) -> int:
    """Return the bytes that a folder's files take on disk; a file with several names counts once."""
    sizes = {(status.st_dev, status.st_ino): status.st_blocks for status in file_statuses(folder)}
    return sum(sizes.values()) * 512


def sole_size(folder: Path) -> int:
    """Return the bytes that the removal of a folder frees: those of its files that have no other name."""
    return sum(status.st_blocks for status in file_statuses(folder) if status.st_nlink == 1) * 512


def file_statuses(folder: Path) -> Iterator[os.stat_result]:
    """Yield the status of each file below a folder; files that vanish meanwhile are left out."""
    for place, _, names in walk_folder(folder):
        for name in names:
            with suppress(OSError):
                yield os.lstat(os.path.join(place, name))


def writable_directory(where: Path, *, option: str) -> Path:
    """Make a directory if it isn't there, and try to write to it.

    Raise ``InputError``, which names ``option`` as the way to another place, if this user can't write there. Raise
    ``DiskFull`` if there is no room even for an empty file.
    """
    try:
        where.mkdir(parents=True, exist_ok=True)
        # Without a name where the system can do that, so that a kill leaves nothing.
        with tempfile.TemporaryFile(dir=where) as trial:
            trial.write(b"x")
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(where, option=option) from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"{where} can't be written to ({reason}): name another place with {option}") from error
    return where


def parse_size(text: str) -> int:
    """Return the bytes of ``20GB``, ``500 MB``, ``1.5T`` (powers of 1000). Raise ``ValueError`` for other texts."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?\s*", text.lower())
    size = float(found[1]) * 1000 ** " kmgt".index(found[2] or " ") if found else 0.0
    if not 1 <= size <= _LARGEST:
        raise ValueError(f"{text!r} is no size: write it as 20GB or 500MB")
    return int(size)


def format_bytes(size: float) -> str:
    """Return a number of bytes as people read it: ``846 MB``, ``6.1 GB``."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
