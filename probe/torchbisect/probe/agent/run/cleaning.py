"""Remove what a run leaves behind in folders, whatever it is and whoever may read it."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from typing import List, Sequence


class PrivateFolders:
    """Folders that belong to the agent's container alone, and are emptied after each run.

    Args:
        paths: the folders.
        kept: the path of the agent's own folder, which may lie in one of them.
    """

    def __init__(self, paths: Sequence[str], kept: str) -> None:
        self.paths = paths
        self._kept = kept

    def sweep(self) -> None:
        """Remove everything but the agent's own folder."""
        for folder in self.paths:
            for name in _entries(folder):
                path = os.path.join(folder, name)
                if path != self._kept:
                    remove(path)


def remove(path: str) -> None:
    """Remove a file or a folder, also one with folders that nobody may read; do nothing if it is not there.

    A script's processes have ended before, so nothing here changes meanwhile. Nothing here calls itself and no path
    grows: folders may lie in each other to a depth for which the stack, and the longest path, are too short.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
        aside, pending = os.path.join(path, os.urandom(8).hex()), [path]
        for number in itertools.count():
            if not pending:
                break
            folder = pending.pop()
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
            pending += _empty(folder, "{}-{}-".format(aside, number))
            if folder != path:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        os.rmdir(path)


def unlock(folder: str) -> None:
    """Take back the rights to a folder of one's own that a run took away."""
    with contextlib.suppress(OSError):
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            os.chmod(folder, 0o700)


def _empty(folder: str, aside: str) -> List[str]:
    """Remove the files of a folder, and move its folders to paths that begin with ``aside``; return these paths."""
    found = []
    try:
        with os.scandir(folder) as entries:
            listed = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
    for number, (path, is_folder) in enumerate(listed):
        with contextlib.suppress(OSError):
            if not is_folder:
                os.unlink(path)
                continue
            moved = aside + str(number)
            os.chmod(path, 0o700)
            os.rename(path, moved)
            found.append(moved)
    return found


def _entries(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()
