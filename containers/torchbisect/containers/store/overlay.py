"""Copies of folders by hard links, with other files in them: a torch with other Python files in half a second.

This module uses only the standard library of Python 3.8 and up: a container runs its text too, if an installation is
in the engine's volume.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

#: Errors of a filesystem that can't link: another device, not permitted, too many links, not supported.
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP})
_GIT_VERSION = re.compile(r"^git_version = .*$", re.MULTILINE)


def link_tree(source: Path, target: Path) -> None:
    """Copy a folder by hard links; symbolic links are copied as links."""
    for folder, folders, files in os.walk(source):
        here = target / os.path.relpath(folder, source)
        here.mkdir(exist_ok=True)
        for name in list(folders):
            if os.path.islink(os.path.join(folder, name)):
                folders.remove(name)
                files.append(name)
        for name in files:
            _link(os.path.join(folder, name), here / name)


def overlay_files(environment: Path, layer: Mapping[str, bytes | None], commit: str) -> None:
    """Put files into the site-packages of a virtual environment; every file there may be a hard link to another's.

    ``layer`` has new contents of files by their path in site-packages; ``None`` removes a file. The files are from
    ``commit``, which is written into ``torch/version.py`` and read back. Raise ``FileNotFoundError`` if it is no
    virtual environment with a torch in it, and ``ValueError`` for a path that leads out of it: the names in a wheel are
    foreign.
    """
    site = site_packages(environment)
    for path in layer:
        if os.path.isabs(path) or os.path.normpath(path) != path or path.startswith(".."):
            raise ValueError(f"{path!r} does not lie in site-packages")
        if (site / path).parent.resolve() != site.resolve() / os.path.dirname(path):
            raise ValueError(f"{path!r} leads through a symbolic link")
    for path, contents in layer.items():
        _replace_file(site / path, contents)
    version = site / "torch" / "version.py"
    text = _GIT_VERSION.sub(f"git_version = {commit!r}", version.read_text(encoding="utf-8"))
    _replace_file(version, text.encode())


def site_packages(environment: Path) -> Path:
    """Return the site-packages of a virtual environment. Raise ``FileNotFoundError`` if it is none."""
    found = sorted(environment.glob("lib/python3*/site-packages"))
    if not (environment / "pyvenv.cfg").exists() or not found:
        raise FileNotFoundError(f"{environment} is no virtual environment")
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


def _replace_file(path: Path, contents: bytes | None) -> None:
    """Replace or remove a file and its byte code; the file that it may be a hard link of is never written to."""
    path.unlink(missing_ok=True)
    if path.suffix == ".py":
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
    if contents is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
