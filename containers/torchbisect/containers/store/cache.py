"""Cache folder: environments, the installer's wheels and journals, kept between runs; and room on a full disk.

Environments and wheels lie in one folder, because their files are hard links of each other. A release takes its few
gigabytes once, however many environments contain parts of it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Callable
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
    writable_directory,
)
from torchbisect.containers.store.locks import FileLock
from torchbisect.core.retry import Notify, silent

#: The variable that names the folder if ``--cache-dir`` is not given.
VARIABLE = "TORCHBISECT_CACHE_DIR"

#: Written into an environment last, before it gets its name.
FACTS_FILE = "torchbisect-facts.json"

_REMOVED = "gone-"


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
        locks: the lock files; they are empty and never removed.
    """

    def __init__(self, directory: Path | str | None = None, *, limit: int | None = None) -> None:
        """Make the folder if necessary. Raise ``InputError`` if it can't be written to, ``DiskFull`` if it has no room.

        ``directory`` is by default ``TORCHBISECT_CACHE_DIR``, else the system's folder for caches. Environments are
        removed to keep it below ``limit`` bytes.
        """
        self.limit = limit
        option = "--cache-dir" if directory else VARIABLE if os.environ.get(VARIABLE) else "--cache-dir"
        named = directory or os.environ.get(VARIABLE) or platformdirs.user_cache_path("torchbisect")
        self.root = writable_directory(Path(named).expanduser().absolute(), option=option)
        self.venvs, self.unfinished, self.wheels = self.root / "venvs", self.root / "making", self.root / "uv"
        self.bytecode, self.journal, self.locks = self.root / "bytecode", self.root / "journal", self.root / "locks"
        for place in (self.venvs, self.unfinished, self.wheels, self.journal, self.locks):
            writable_directory(place, option=option)

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

    def available(self) -> int:
        """Return the bytes that can still be kept here, within the free disk and the limit."""
        return self.free() if self.limit is None else min(self.free(), self.limit - folder_size(self.root))

    def evict(self, key: str) -> bool:
        """Remove one environment unless a run leases it; return true if it was removed."""
        moved = self.unfinished / f"{_REMOVED}{uuid.uuid4().hex}"
        with self.lease_lock(key, shared=False).if_free() as free, contextlib.suppress(FileNotFoundError):
            if free:
                os.rename(self.venvs / key, moved)
                remove_tree(moved)
                return True
        return False

    def evict_oldest(self, notify: Notify = silent, *, sparing: str | None = None) -> bool:
        """Remove the environment that was unused longest among those that no run leases; return true if there was one.

        The environment ``sparing`` will be leased next and stays.
        """
        for kept in self.environments():
            if kept.key != sparing and self.evict(kept.key):
                notify(f"made room: removed the environment {kept.key}, last used {_ago(kept.used)} ago")
                return True
        return False

    def make_room(
        self, needed: int, *, notify: Notify = silent, reclaim: Callable[[list[str]], None] | None = None
    ) -> None:
        """Remove environments, the one unused longest first, until ``needed`` bytes are free.

        ``reclaim`` removes packages from the wheels. Most files of an environment are links to there, and their room is
        free only after that. Raise ``DiskFull`` if nothing more can be removed and there is still too little room.
        """
        while self.free() < needed:
            if not self._evict_one(notify, reclaim):
                raise disk_full(self.root)

    def keep_to_limit(
        self,
        *,
        sparing: str | None = None,
        notify: Notify = silent,
        reclaim: Callable[[list[str]], None] | None = None,
    ) -> None:
        """Remove environments, the one unused longest first, until the folder is below its limit or none is left.

        The arguments are those of ``make_room`` and ``evict_oldest``.
        """
        while self.limit is not None and folder_size(self.root) > self.limit:
            if not self._evict_one(notify, reclaim, sparing):
                notify(f"{self.root} is over its limit of {format_bytes(self.limit)}: all that is left there is in use")
                break

    def _evict_one(
        self, notify: Notify, reclaim: Callable[[list[str]], None] | None, sparing: str | None = None
    ) -> bool:
        """Remove one environment and the packages that no other holds; return true if that freed anything."""
        evicted = self.evict_oldest(notify, sparing=sparing)
        remove_unused_bytecode(self.bytecode)
        unused = self.unlinked_packages() if reclaim else []
        if reclaim and unused:
            before = self.free()
            reclaim(unused)
            evicted = evicted or self.free() > before
        return evicted

    def unlinked_packages(self) -> list[str]:
        """Return the packages among the wheels that no environment holds a link to."""
        names: set[str] = set()
        for archive in (self.wheels / "archive-v0").glob("*"):
            infos = [place.name for place in archive.glob("*.dist-info")]
            if infos and all(status.st_nlink == 1 for status in file_statuses(archive)):
                names.update(info.partition("-")[0] for info in infos)
        return sorted(names)

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


def remove_tree(place: Path) -> None:
    """Remove a folder with everything in it, also where write permission is missing; ignore failures."""
    if place.is_dir() and not place.is_symlink():
        for folder, _, _ in os.walk(place):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(place, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            place.unlink()


def _ago(moment: float) -> str:
    seconds = max(time.time() - moment, 0.0)
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
