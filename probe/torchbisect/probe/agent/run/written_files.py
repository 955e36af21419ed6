"""Limits on the number and the size of the files that a run writes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

from .script_processes import family_of


class WrittenFiles:
    """The files of a run.

    Args:
        folders: those that it writes to.
        files, bytes: the limits on their number and size.
        private: folders that nothing else writes to. If there are some, they are watched in place of the others, and
            the run may fill nine tenths of them at most.

    To count files takes time. So they are counted only once the file system has lost as many as the limit allows; if
    others wrote them, the next count waits for as many again. Open files without a name count too.
    """

    def __init__(self, folders: Sequence[str], files: int, bytes: int, private: Sequence[str] = ()) -> None:
        self._folders = private or folders
        self._free = _free_in(self._folders)
        self._limits = [
            (min(files, free[0] * 9 // 10), min(bytes, free[1] * 9 // 10)) if private else (files, bytes)
            for free in self._free
        ]

    def exceeded_limit(self, child: int) -> Optional[str]:
        """Return the limit that the child and its family exceed, ``files`` or ``bytes``; ``None`` for neither."""
        free = _free_in(self._folders)
        for at, limits in enumerate(self._limits):
            if any(self._free[at][kind] - free[at][kind] > limits[kind] for kind in (0, 1)):
                self._free[at] = free[at]
                exceeded = _count(self._folders[at], *limits, processes=family_of(child))
                if exceeded:
                    return exceeded
        return None


def _count(folder: str, files: int, bytes: int, processes: Sequence[int]) -> Optional[str]:
    size = _unlinked_bytes(processes)
    number, pending = 0, [folder]
    while size <= bytes:
        if not pending:
            return None
        try:
            entries = _listed(pending.pop())
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                # What lies there can't be counted, and no script needs it.
                return "files"
            continue
        for entry in entries:
            number += 1
            if number > files:
                return "files"
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                size += entry.stat(follow_symlinks=False).st_blocks * 512
    return "bytes"


def _listed(folder: str) -> List["os.DirEntry[str]"]:
    """Return what lies in a folder, also of one to which the run took away its own rights."""
    try:
        return list(os.scandir(folder))
    except PermissionError:
        os.chmod(folder, 0o700)
        return list(os.scandir(folder))


def _unlinked_bytes(processes: Sequence[int]) -> int:
    """Return the size of the files that processes have open and that have no name any more."""
    found = {}
    for process in processes:
        place = "/proc/{}/fd".format(process)
        with contextlib.suppress(OSError):
            for name in os.listdir(place):
                with contextlib.suppress(OSError):
                    status = os.stat(os.path.join(place, name))
                    if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(found.values())


def _free_in(folders: Iterable[str]) -> List[Tuple[int, int]]:
    """Return the free files and bytes of the file system of each folder."""
    found = []
    for folder in folders:
        try:
            there = os.statvfs(folder)
            found.append((there.f_ffree, there.f_bfree * there.f_frsize))
        except OSError:
            found.append((0, 0))
    return found


def entries_below(folder: str) -> Iterator["os.DirEntry[str]"]:
    """Yield what lies in a folder, at any depth; what can't be read, or is being removed, is left out."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue
