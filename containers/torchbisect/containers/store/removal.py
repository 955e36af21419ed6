"""Remove folders that strangers may have filled: of any depth, and with folders that nobody may read."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path


def remove_tree(place: Path) -> None:
    """Remove a file, a link, or a folder with everything in it, also where permissions are missing; ignore failures.

    Nothing here calls itself and no path grows: folders may lie in each other to a depth for which the stack, and the
    longest path, are too short. ``cleaning.remove`` does the same in the agent.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            os.unlink(place)
            return
        top = str(place)
        pending = [top]
        while pending:
            folder = pending.pop()
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
            pending += _empty(folder, top)
            if folder != top:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        os.rmdir(top)


def unlock(place: Path) -> None:
    """Take back the rights to a folder of one's own that a script took away."""
    with contextlib.suppress(OSError):
        if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
            os.chmod(place, 0o700)


def _empty(folder: str, top: str) -> list[str]:
    """Remove the files of a folder, and move its folders into ``top`` under new names; return their paths there."""
    moved = []
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
    for path, is_folder in found:
        with contextlib.suppress(OSError):
            if not is_folder:
                os.unlink(path)
                continue
            new = os.path.join(top, uuid.uuid4().hex)
            os.chmod(path, 0o700)
            os.rename(path, new)
            moved.append(new)
    return moved
