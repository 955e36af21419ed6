"""Copies that cost no room, and files laid over them: a torch with other Python, in half a second and a few MB.

The standard library alone, for Python 3.8 and up: this text is also what a container runs where an installation lies in
the engine's volume.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

#: What says that a filesystem can't link: another device, not permitted, too many links, not supported.
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP})
_GIT_VERSION = re.compile(r"^git_version = .*$", re.MULTILINE)


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


def overlay_files(place: Path, layer: Mapping[str, bytes | None], commit: str) -> None:
    """Put files into the packages of a virtual environment that shares its own with others.

    Args:
        place: the environment's folder; everything in it may be a link.
        layer: the contents of files by their path in site-packages; ``None`` for files to take away.
        commit: whose Python it is; it is written into ``torch/version.py``, so that what is read back is true.

    Raises:
        FileNotFoundError: if it is no virtual environment with a torch in it.
    """
    site = site_packages(place)
    for path, contents in layer.items():
        _put(site / path, contents)
    version = site / "torch" / "version.py"
    told = _GIT_VERSION.sub(f"git_version = {commit!r}", version.read_text(encoding="utf-8"))
    _put(version, told.encode())


def site_packages(place: Path) -> Path:
    """Where the packages of a virtual environment lie. Raises ``FileNotFoundError`` if it is none."""
    found = sorted(place.glob("lib/python3*/site-packages"))
    if not (place / "pyvenv.cfg").exists() or not found:
        raise FileNotFoundError(f"{place} is no virtual environment")
    return found[0]


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


def _put(path: Path, contents: bytes | None) -> None:
    """Give a file new contents or take it away, its byte code with it; never written through the link it shares."""
    path.unlink(missing_ok=True)
    if path.suffix == ".py":
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
    if contents is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
