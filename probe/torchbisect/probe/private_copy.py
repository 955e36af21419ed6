"""Copy files of a user into a private folder, and pack that folder for a container."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbisect.core.errors import DiskFull
from torchbisect.probe.inside import open_inside

_BLOCK = 1 << 20
_SENT_BYTES = 4 << 20


@dataclass(frozen=True)
class CopyEntry:
    """A file, a folder or a link that can be copied; ``rank`` is 0 for what the script names."""

    path: Path
    kind: str
    rank: int = 1
    size: int = 0


def copy_entries(entries: Sequence[CopyEntry], base: Path, target: Path) -> str:
    """Copy the entries; return a digest of their names and contents, empty if there are none."""
    lines = []
    for entry in sorted({entry.path: entry for entry in entries}.values(), key=lambda entry: entry.path):
        name = relative_name(base, entry.path)
        path = target / name
        if not name:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.kind == "folder":
                path.mkdir(exist_ok=True)
                lines.append(f"folder {name}")
            elif entry.kind == "link":
                leads = os.path.relpath(os.path.realpath(entry.path), os.path.realpath(entry.path.parent))
                path.symlink_to(leads)
                lines.append(f"link {name} {leads}")
            else:
                lines.append(f"file {name} {_copy_file(entry, base, path)}")
        except OSError as error:
            if os.path.exists(path.parent) and os.path.exists(entry.path) and error.filename in (None, str(path)):
                raise DiskFull(f"{target}: {error.strerror}: the script's files can't be copied there") from error
            continue  # it vanished, changed or can't be read: the script would not have it either
    if not lines:
        return ""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _copy_file(entry: CopyEntry, base: Path, path: Path) -> str:
    """Copy one file, with its time and the right to run it; return the digest of its content."""
    digest = hashlib.sha256()
    real = Path(os.path.realpath(entry.path))
    with open_inside(real.parent if entry.kind == "added" else base, real) as file:
        status = os.fstat(file.fileno())
        mode = 0o755 if status.st_mode & 0o100 else 0o644
        left = status.st_size  # a file that grows meanwhile is cut
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as copy:
            while left > 0 and (block := file.read(min(_BLOCK, left))):
                left -= len(block)
                digest.update(block)
                copy.write(block)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return f"{mode:o} {digest.hexdigest()}"


def packed(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the files of a copy in parts of a few megabytes, as the agent's ``Workplaces.receive`` reads them."""
    items: list[dict[str, Any]] = []
    size = 0
    for path, name in walk(folder):
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            items.append({"kind": "link", "path": name, "target": os.readlink(path)})
        elif stat.S_ISDIR(status.st_mode):
            items.append({"kind": "folder", "path": name})
        else:
            mode = 0o755 if status.st_mode & 0o100 else 0o644
            with path.open("rb") as file:
                data = file.read(_SENT_BYTES)
                while True:
                    text = base64.b64encode(data).decode("ascii")
                    items.append({"kind": "file", "path": name, "data": text, "mode": mode})
                    size += len(data)
                    if size >= _SENT_BYTES:
                        yield items
                        items, size = [], 0
                    data = file.read(_SENT_BYTES)
                    if not data:
                        break
    yield items


def relative_name(base: Path, path: Path) -> str:
    """Return a path below ``base`` as the copy has it, with ``/``; empty for ``base`` itself."""
    return "" if path == base else path.relative_to(base).as_posix()


def walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield everything below a folder with its relative name; a folder comes before what is in it."""
    for place, folders, files in os.walk(folder):
        for name in sorted(folders + files):
            path = Path(place, name)
            yield path, path.relative_to(folder).as_posix()
