"""Remove what a run leaves behind in folders, whatever it is and whoever may read it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from typing import Sequence


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

    A script's processes have ended before, so nothing here changes meanwhile.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
        shutil.rmtree(path, ignore_errors=True)
        if os.path.lexists(path):
            os.chmod(path, 0o700)
            for place, folders, _ in os.walk(path):
                for name in folders:
                    if not os.path.islink(os.path.join(place, name)):
                        os.chmod(os.path.join(place, name), 0o700)
            shutil.rmtree(path, ignore_errors=True)


def _entries(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()
