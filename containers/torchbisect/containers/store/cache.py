"""Cache folder: environments, the installer's wheels and journals, kept between runs within a limit.

Environments and wheels lie in one folder, because their files are hard links of each other. A release takes its few
gigabytes once, however many environments contain parts of it. Room for an install is made before it begins.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from torchbisect.containers.store.bytecode import remove_unused_bytecode
from torchbisect.containers.store.disk import (
    disk_errors,
    disk_full,
    file_statuses,
    folder_size,
    format_bytes,
    free_bytes,
    sole_size,
    writable_directory,
)
from torchbisect.containers.store.locks import FileLock
from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.errors import DiskFull
from torchbisect.core.retry import Notify, silent

#: The variable that names the folder if ``--cache-dir`` is not given.
VARIABLE = "TORCHBISECT_CACHE_DIR"

#: Written into an environment last, before it gets its name.
FACTS_FILE = "torchbisect-facts.json"

#: The least default limit, in bytes: room for three CUDA releases with their libraries.
LEAST_LIMIT = 20 * 10**9

_REMOVED = "gone-"
_ROOM = ".room"
#: The endings of uv's notes about unpacked wheels: from an index, and from a folder.
_NOTES = frozenset({".http", ".rev"})
_WAIT_FOR_ROOM = "another run is making room in the cache: waiting for it"
_WAIT_FOR_INSTALL = "another run is installing, and the cache has no room beside it: waiting for its end"


def default_limit(disk: int) -> int:
    """Return the limit for a cache on a disk of this size: a tenth of it, and at least ``LEAST_LIMIT``."""
    return max(disk // 10, LEAST_LIMIT)


CACHE_TAG = "CACHEDIR.TAG"
"""Marks a folder as a cache: https://bford.info/cachedir/, which archivers, pip, uv and pytest follow."""


def _tag(folder: Path) -> None:
    """Mark a folder as a cache, so that it is neither archived nor taken for a user's files."""
    with contextlib.suppress(OSError), (folder / CACHE_TAG).open("x", encoding="ascii") as file:
        file.write("Signature: 8a477f597d28d172789f06886806bc55\n")


def cache_folder(directory: Path | str | None = None) -> Path:
    """Return the folder of the cache, which need not exist: ``directory``, else that of the variable or the system."""
    named = directory or os.environ.get(VARIABLE) or platformdirs.user_cache_path("torchbisect")
    return Path(named).expanduser().absolute()


@dataclass(frozen=True)
class CachedEnvironment:
    """One environment in the cache: its name, its folder, and its last use in seconds since the epoch."""

    key: str
    path: Path
    used: float


class Cache:
    """One folder on one filesystem, shared by all of this user's runs, at the same time too.

    Attributes:
        venvs: the finished environments, one folder each.
        unfinished: environments that are being made or removed; nothing in here is ever used.
        wheels: the installer's own cache.
        bytecode: the byte code that environments share.
        journal: the probe's earlier answers.
        locks: the lock files; they are never removed.
        limit: the bytes that the folder may take.
    """

    def __init__(self, directory: Path | str | None = None, *, limit: int | None = None) -> None:
        """Make the folder if necessary. Raise ``InputError`` if it can't be written to, ``DiskFull`` if it has no room.

        ``directory`` is by default ``TORCHBISECT_CACHE_DIR``, else the system's folder for caches. Environments are
        removed to keep it below ``limit`` bytes, by default those of ``default_limit``.
        """
        option = "--cache-dir" if directory else VARIABLE if os.environ.get(VARIABLE) else "--cache-dir"
        self.root = writable_directory(cache_folder(directory), option=option)
        self.limit = default_limit(shutil.disk_usage(self.root).total) if limit is None else limit
        self.venvs, self.unfinished, self.wheels = self.root / "venvs", self.root / "making", self.root / "uv"
        self.bytecode, self.journal, self.locks = self.root / "bytecode", self.root / "journal", self.root / "locks"
        for place in (self.venvs, self.unfinished, self.wheels, self.journal, self.locks):
            writable_directory(place, option=option)
        _tag(self.root)
        self._idle: list[Callable[[], None]] = []

    @contextmanager
    def giving_back(self, release: Callable[[], None]) -> Iterator[None]:
        """Let ``give_back`` call ``release`` in the context, from any thread: it gives back leases that can wait."""
        self._idle.append(release)
        try:
            yield
        finally:
            self._idle.remove(release)

    def give_back(self) -> None:
        """Give back the leases that can wait, before environments are removed to make room."""
        for release in list(self._idle):
            release()

    def lease_lock(self, key: str, *, shared: bool = True) -> FileLock:
        """Return the lock that users of an environment share, and that is held alone to remove the environment."""
        return FileLock(self.locks / f"{key}.lease", shared=shared)

    def install_lock(self, key: str) -> FileLock:
        """Return the lock that is held to make an environment, by one process at a time."""
        return FileLock(self.locks / f"{key}.make")

    def wheels_lock(self, *, shared: bool) -> FileLock:
        """Return the lock on the wheels: installs share it, a clean-up holds it alone."""
        return FileLock(self.locks / "wheels", shared=shared)

    def has_environment(self, key: str) -> bool:
        """Return true if an environment is there and complete."""
        return (self.venvs / key / FACTS_FILE).exists()

    def mark_used(self, key: str) -> None:
        """Note that an environment is used now; the environment unused longest is removed first."""
        with contextlib.suppress(OSError):
            os.utime(self.venvs / key / FACTS_FILE)

    def environments(self) -> list[CachedEnvironment]:
        """Return all finished environments, the one unused longest first."""
        found = []
        for place in self.venvs.iterdir():
            with contextlib.suppress(OSError):
                found.append(CachedEnvironment(place.name, place, (place / FACTS_FILE).stat().st_mtime))
        return sorted(found, key=lambda kept: kept.used)

    def free(self) -> int:
        """Return the bytes that can still be written here."""
        return free_bytes(self.root)

    def taken(self) -> int:
        """Return the bytes that all of it takes; to look at every file takes about a second."""
        return folder_size(self.root)

    def available(self, taken: int | None = None) -> int:
        """Return the bytes that can still be kept here: within the free disk and the limit, beside running installs.

        ``taken`` is what ``taken()`` returned a moment ago.
        """
        taken = self.taken() if taken is None else taken
        return min(self.free(), self.limit - taken) - self._reserved()

    def could_keep(self, needed: int) -> bool:
        """Return True if so many bytes could be kept here if all that is here were removed."""
        if needed > self.limit:
            return False
        free = self.free()
        return free >= needed or free + self.taken() >= needed

    def evict(self, key: str) -> bool:
        """Remove one environment unless a run leases it; return true if it was removed."""
        return self._evict(key) is not None

    def _evict(self, key: str) -> int | None:
        """Remove one environment unless a run leases it; return the bytes that this freed, ``None`` if it stays."""
        moved = self.unfinished / f"{_REMOVED}{uuid.uuid4().hex}"
        with self.lease_lock(key, shared=False).if_free() as free, contextlib.suppress(FileNotFoundError):
            if free:
                os.rename(self.venvs / key, moved)
                freed = sole_size(moved)
                remove_tree(moved)
                return freed
        return None

    def evict_oldest(self, notify: Notify = silent) -> bool:
        """Remove the environment that was unused longest among those that no run leases; return true if one was."""
        return self._evict_oldest(notify) is not None

    def _evict_oldest(self, notify: Notify) -> int | None:
        """Do ``evict_oldest``; return the bytes that this freed, which are few while its wheels stay."""
        for kept in self.environments():
            freed = self._evict(kept.key)
            if freed is not None:
                notify(f"made room: removed the environment {kept.key}, last used {_ago(kept.used)} ago")
                return freed
        return None

    @contextmanager
    def reserved(
        self,
        key: str,
        needed: int,
        *,
        taken: int | None = None,
        notify: Notify = silent,
        warn: Notify = silent,
        cancel: threading.Event | None = None,
    ) -> Iterator[bool]:
        """Make room for an install of ``needed`` bytes, and keep other installs out of it while the context lasts.

        ``taken`` is what ``taken()`` returned a moment ago. Yield false if ``cancel`` ended a wait. Where too little
        can be removed, the install may try all the same.
        """
        note, turn = FileLock(self.locks / f"{key}{_ROOM}"), FileLock(self.locks / "room")
        made = turn.acquire(waiting=_WAIT_FOR_ROOM, notify=notify, cancel=cancel)
        try:
            if made:
                with contextlib.suppress(DiskFull):
                    made = self.make_room(needed, taken=taken, notify=notify, warn=warn, cancel=cancel)
                note.acquire()
                note.write(str(needed))
        finally:
            turn.release()
        try:
            yield made
        finally:
            note.release()

    def make_room(
        self,
        needed: int,
        *,
        taken: int | None = None,
        notify: Notify = silent,
        warn: Notify = silent,
        cancel: threading.Event | None = None,
    ) -> bool:
        """Remove wheels that no environment holds, then the environments unused longest, until there is room.

        There is room if ``needed`` bytes are free on the disk and within the limit. Environments in use stay; ``warn``
        is told if the limit can't be kept. Return false if ``cancel`` ended the wait for another run's install. Raise
        ``DiskFull`` if the disk still has too little room.
        """
        if self.available(taken) >= needed:
            return True
        self.give_back()
        # Files that an install has fetched and not linked yet must not be taken for unused ones.
        wheels = self.wheels_lock(shared=False)
        if not wheels.acquire(waiting=_WAIT_FOR_INSTALL, notify=notify, cancel=cancel):
            return False
        try:
            taken = self.taken()
            while (room := self.available(taken)) < needed:
                freed = self.remove_unlinked() or self._evict_oldest(notify)
                if freed is not None:
                    taken -= freed
                    continue
                if self.free() < needed:
                    raise disk_full(self.root)
                over = f"{format_bytes(needed - room)} over its limit of {format_bytes(self.limit)}"
                warn(f"the cache will be up to {over}: all that is left there is in use (--cache-limit sets another)")
                break
        finally:
            wheels.release()
        return True

    def remove_unlinked(self) -> int:
        """Remove the wheels and the byte code that no environment holds a link to; return the bytes freed.

        The caller holds ``wheels_lock`` alone. uv fetches what is missing there again.
        """
        freed = remove_unused_bytecode(self.bytecode)
        unlinked = [archive for archive, names in self._archives() if names and _is_unlinked(archive)]
        freed += sum(map(sole_size, unlinked)) + self._forget({archive.name for archive in unlinked})
        for archive in unlinked:
            remove_tree(archive)
        return freed

    def _forget(self, archives: set[str]) -> int:
        """Remove uv's links and notes about unpacked wheels, which name the folder of theirs; return the bytes freed.

        ``uv cache clean`` can't be used: it removes all versions of a package, also those that environments hold.
        """
        names, freed = [name.encode() for name in archives], 0
        for place in self.wheels.glob("wheels-v*/**/*") if names else ():
            with contextlib.suppress(OSError):
                if place.is_symlink():
                    known = os.readlink(place).rpartition("/")[2] in archives
                else:
                    known = place.suffix in _NOTES and any(name in place.read_bytes() for name in names)
                if known:
                    freed += place.lstat().st_blocks * 512
                    place.unlink()
        return freed

    def packages(self) -> frozenset[str]:
        """Return the packages among the wheels, each as ``name-version`` in the spelling of its wheel."""
        return frozenset(name for _, names in self._archives() for name in names)

    def _archives(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield the unpacked wheels in uv's cache, each with the packages in it."""
        for archive in (self.wheels / "archive-v0").glob("*"):
            yield archive, [place.name.removesuffix(".dist-info") for place in archive.glob("*.dist-info")]

    def _reserved(self) -> int:
        """Return the bytes that running installs have reserved."""
        total = 0
        for place in self.locks.glob(f"*{_ROOM}"):
            with FileLock(place).if_free() as free, contextlib.suppress(OSError, ValueError):
                total += 0 if free else int(place.read_text(encoding="ascii"))
        return total

    def sweep(self) -> None:
        """Remove the unfinished work of dead runs; that of a living run stays."""
        with disk_errors(self.unfinished):
            for place in list(self.unfinished.iterdir()):
                lock = self.install_lock("gone" if place.name.startswith(_REMOVED) else place.name)
                with lock.if_free() as free:
                    if free:
                        remove_tree(place)
        with self.wheels_lock(shared=False).if_free() as free:
            for place in [*self.wheels.glob(".tmp*"), *self.wheels.glob("*/.tmp*")] if free else ():
                remove_tree(place)


def _is_unlinked(archive: Path) -> bool:
    return all(status.st_nlink == 1 for status in file_statuses(archive))


def _ago(moment: float) -> str:
    seconds = max(time.time() - moment, 0.0)
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
