"""Remove what a run leaves behind in folders, whatever it is and whoever may read it."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from typing import List, Sequence, Set

from . import ipc_objects


class PrivateFolders:
    """Folders that the runs of this agent alone write to, and that are emptied after each run.

    Where the machine is the agent's alone, what a run leaves in the kernel is removed too.

    Args:
        paths: the folders.
        kept: the path of the agent's own folder, which may lie in one of them. What was there before a run stays.
        made: the names there that a run may make, and that stay too.
        is_own_machine: True in a container of the agent.
    """

    def __init__(self, paths: Sequence[str], kept: str, made: Sequence[str], is_own_machine: bool) -> None:
        self._paths = [*paths, "/dev/mqueue"] if is_own_machine else paths
        self._is_own_machine = is_own_machine
        self._kept = kept
        self._made = made
        self._own = _own_folders(kept)
        self._before: Set[str] = set()

    def note(self) -> None:
        """Remember what is in the agent's own folder before a run."""
        self._before = {*_entries(self._kept), *self._made}

    def sweep(self) -> None:
        """Take back the rights to the agent's own folders, and remove everything else."""
        for folder in self._own:
            _unlock(folder)
        if self._is_own_machine:
            ipc_objects.remove_all()
        for folder in (*self._paths, self._kept):
            for name in _entries(folder):
                path = os.path.join(folder, name)
                if path != self._kept and not (folder == self._kept and name in self._before):
                    remove(path)


def _own_folders(folder: str) -> List[str]:
    """Return the folder of an agent and those around it that torchbisect has made, the outermost first."""
    found = [folder]
    while not os.path.basename(found[0]).startswith("torchbisect-run-"):
        if os.path.dirname(found[0]) == found[0]:
            return [os.path.dirname(folder), folder]
        found.insert(0, os.path.dirname(found[0]))
    return found


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


def _unlock(folder: str) -> None:
    """Take back the rights to a folder of one's own that a run took away."""
    with contextlib.suppress(OSError):
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            os.chmod(folder, 0o700)


def _entries(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()
