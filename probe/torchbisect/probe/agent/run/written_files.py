"""Limits on the number and the size of the files that a run writes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union


class Watched(NamedTuple):
    """The folders in which the files of a run are counted; none of them lies in another one.

    Attributes:
        folders: those that it writes to.
        are_private: True if nothing else writes to the file systems of these folders. The run may fill nine tenths of
            each at most then.
    """

    folders: Sequence[str]
    are_private: bool


class WrittenFiles:
    """The files of a run, in all of its folders together.

    Args:
        watched: the folders.
        files, bytes: the limits on the number and the size of the files.

    To count files takes time. So they are counted only once the file systems have lost as many as the limit allows; if
    others wrote them, the next count waits for as many again. Open files without a name count too.
    """

    def __init__(self, watched: Watched, files: int, bytes: int) -> None:
        self._folders = watched.folders
        self._free = _free_in(self._folders)
        self._limits = (files, bytes)
        share = 9 if watched.are_private else 10
        self._limits_of_each = [(one[0] * share // 10, one[1] * share // 10) for one in self._free]

    def exceeded_limit(self, family: Sequence[int]) -> Optional[str]:
        """Return the limit that a child's family exceeds, ``files`` or ``bytes``; ``None`` for neither."""
        free = _free_in(self._folders)
        lost = [(before[0] - now[0], before[1] - now[1]) for before, now in zip(self._free, free)]
        of_all = tuple(sum(max(0, one[kind]) for one in lost) for kind in (0, 1))
        if not _exceeds(of_all, self._limits) and not any(map(_exceeds, lost, self._limits_of_each)):
            return None
        self._free = free
        return self._counted(_unlinked_bytes(family))

    def _counted(self, unlinked: int) -> Optional[str]:
        """Count the files of all folders; those without a name may lie in any of them."""
        files, size = 0, unlinked
        for folder, limits in zip(self._folders, self._limits_of_each):
            more = _count(
                folder, min(limits[0], self._limits[0] - files), min(limits[1] - unlinked, self._limits[1] - size)
            )
            if isinstance(more, str):
                return more
            files, size = files + more[0], size + more[1]
        return None


def _exceeds(number: Sequence[int], limit: Sequence[int]) -> bool:
    return number[0] > limit[0] or number[1] > limit[1]


def _count(folder: str, files: int, bytes: int) -> Union[str, Tuple[int, int]]:
    """Return the number and the size of the files of a folder, or the limit that they exceed."""
    number, size, pending = 0, 0, [folder]
    while size <= bytes:
        if not pending:
            return number, size
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
