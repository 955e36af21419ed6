"""Copies that cost no room: every file is the same file under one more name."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

#: What says that a filesystem can't link: another device, not permitted, too many links, not supported.
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP})


def link_tree(source: Path, target: Path) -> None:
    """A copy of which every file is the same file; links are copied as links."""
    for folder, folders, files in os.walk(source):
        here = target / os.path.relpath(folder, source)
        here.mkdir(exist_ok=True)
        for name in list(folders):
            if os.path.islink(os.path.join(folder, name)):
                folders.remove(name)
                files.append(name)
        for name in files:
            _link(os.path.join(folder, name), here / name)


def _link(source: str, target: Path) -> None:
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(source, target)
