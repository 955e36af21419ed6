"""Copy a folder of the user for a container that can't see it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from torchbisect.core.errors import InputError

#: It is copied for each run, into memory.
LARGEST = 256 << 20
_LEFT_BEHIND = frozenset({".git", "__pycache__"})


def copy_folder(source: Path, target: Path) -> None:
    """Copy the files and folders below ``source``, without links, special files and git's own folder.

    Raises:
        InputError: if there is more than ``LARGEST`` bytes of it, or a file that can't be read.
        OSError: if there is no room for it.
    """
    size = 0
    for folder, folders, files in os.walk(source):
        left = _left_behind(folder, folders + files)
        folders[:] = [name for name in folders if name not in left]
        size += sum(os.lstat(os.path.join(folder, name)).st_size for name in files if name not in left)
        if size > LARGEST:
            raise InputError(
                f"{source} holds more than {LARGEST >> 20} MB, and each run of --test takes a copy of it into a "
                "container: start torchbisect in a folder with only what the test needs"
            )
    try:
        shutil.copytree(source, target, ignore=_left_behind)
    except shutil.Error as error:
        _, _, why = error.args[0][0]
        raise InputError(f"{source} can't be copied for a container ({why}): make that file readable") from error


def _left_behind(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in _LEFT_BEHIND or not _copied(os.path.join(folder, name))}


def _copied(path: str) -> bool:
    return not os.path.islink(path) and (os.path.isfile(path) or os.path.isdir(path))
