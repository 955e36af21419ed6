"""Folder of this process's temporary files, one for each run; any later command removes that of a killed run.

A lock in the folder tells the living from the dead. The system releases it with the process, also in a container with
other process ids or after a restart of the machine, where neither ids nor times would tell.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from torchbisect.containers.process.guard import start_guard
from torchbisect.containers.process.processes import MARK
from torchbisect.containers.store.disk import disk_errors
from torchbisect.containers.store.locks import FileLock
from torchbisect.containers.store.removal import remove_tree, unlock
from torchbisect.core.errors import TorchbisectError

#: A file in the folder: a container engine may have containers of this run. Its text is JSON of the engine's variables.
ENGINE_NOTE = "engine.json"

_PREFIX = "torchbisect-run-"
# The folders of torchbisect 0.1 are removed too.
_PREFIXES = (_PREFIX, "torchbisect-homes-")
_ALIVE = ".alive"

_guard = threading.Lock()
_made: dict[int, tuple[Path, FileLock]] = {}


def run_folder() -> Path:
    """Return the folder of this process, made at the first call and removed at its end.

    Raise ``DiskFull`` or ``MachineError`` if it can't be made.
    """
    with _guard:
        pid = os.getpid()
        kept = _made.get(pid)
        if kept is None or not kept[0].is_dir():
            start_guard(MARK)
            with disk_errors(_parent()):
                kept = _made[pid] = _make()
            atexit.register(_remove_own, pid)
        unlock(kept[0])
        return kept[0]


def unique_folder(name: str) -> Path:
    """Make an empty folder in the folder of this process. Raise ``DiskFull`` or ``MachineError`` if that fails."""
    parent = run_folder()
    with disk_errors(parent):
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))


@contextlib.contextmanager
def temporary_folder(name: str) -> Iterator[str]:
    """Make an empty folder that is removed with the context; raise the errors of ``unique_folder``."""
    folder = unique_folder(name)
    try:
        yield str(folder)
    finally:
        remove_tree(folder)


def sweep_run_folders(sweep_engine: Callable[[str], None] | None = None) -> int:
    """Remove the folders of dead runs; return their number.

    ``sweep_engine`` gets the text of each note about an engine, and removes the containers there. Without it, folders
    with such a note stay.
    """
    removed = 0
    for folder in Path(_parent()).glob("torchbisect-*"):
        with contextlib.suppress(TorchbisectError, OSError, ValueError):
            if folder.name.startswith(_PREFIXES) and _is_own_folder(folder):
                removed += _sweep_folder(folder, sweep_engine)
    return removed


def _sweep_folder(folder: Path, sweep_engine: Callable[[str], None] | None) -> bool:
    if not (folder / _ALIVE).exists():
        if folder.name.startswith(_PREFIX):
            # Its run was killed before it could lock it, or is about to; an empty folder only is removed.
            folder.rmdir()
            return True
        return False
    note = folder / ENGINE_NOTE
    with FileLock(folder / _ALIVE).if_free() as free:
        if not free:
            return False
        if note.exists():
            if sweep_engine is None:
                return False
            with contextlib.suppress(TorchbisectError, OSError, ValueError):
                sweep_engine(note.read_text(encoding="utf-8"))
        remove_tree(folder)
    return True


def _is_own_folder(folder: Path) -> bool:
    """Return true for this user's folders; others may put links and folders of any name beside them."""
    status = os.lstat(folder)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _parent() -> str:
    """Return the system's folder for temporary files.

    ``tempfile`` finds it by writing a file of a random name there, which a kill would leave.
    """
    named = [tempfile.tempdir, *(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")), "/tmp"]
    usable = (place for place in named if place and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK))
    return os.path.abspath(next(usable, None) or tempfile.gettempdir())


def _make() -> tuple[Path, FileLock]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent()))
        lock = FileLock(folder / _ALIVE)
        try:
            # Another run may sweep the folder before it is locked: then this one makes another.
            if lock.try_acquire() and lock.is_in_place():
                folder.chmod(0o700)
                return folder, lock
        except BaseException:
            remove_tree(folder)
            lock.release()
            raise
        lock.release()


def _remove_own(pid: int) -> None:
    kept = _made.pop(pid, None) if pid == os.getpid() else None
    if kept is not None:
        remove_tree(kept[0])
        kept[1].release()
