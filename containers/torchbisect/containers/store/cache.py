"""What is kept between runs: environments, the installer's wheels, journals; and how a full disk gets room.

Environments and wheels lie in one folder on purpose: between them files are hard links, and a release costs its few
gigabytes once, however many environments hold parts of it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from torchbisect.containers.store.bytecode import remove_unused_bytecode
from torchbisect.containers.store.disk import (
    disk_errors,
    disk_full,
    folder_size,
    format_bytes,
    free_bytes,
    writable_directory,
)
from torchbisect.containers.store.locks import FileLock
from torchbisect.core.retry import Notify, silent

#: Names the folder where no ``--cache-dir`` does.
VARIABLE = "TORCHBISECT_CACHE_DIR"

#: Written into an environment as the last thing before it gets its name.
FACTS_FILE = "torchbisect-facts.json"

_REMOVED = "gone-"


@dataclass(frozen=True)
class CachedEnvironment:
    """One environment in the cache.

    Attributes:
        key: its name there.
        path: its folder.
        used: when it was last used, in seconds since the epoch.
    """

    key: str
    path: Path
    used: float


class Cache:
    """One folder on one filesystem; shared by all runs of this user, also by ones that run at the same time."""

    def __init__(self, directory: Path | str | None = None, *, limit: int | None = None) -> None:
        """
        Args:
            directory: the folder; by default what ``TORCHBISECT_CACHE_DIR`` names, else the system's place for caches.
            limit: bytes that the folder is to keep under; environments go for it as they do for a full disk.

        Raises:
            InputError: if it can't be made or written to.
            DiskFull: if there is no room in it at all.
        """
        self.limit = limit
        option = "--cache-dir" if directory else VARIABLE if os.environ.get(VARIABLE) else "--cache-dir"
        named = directory or os.environ.get(VARIABLE) or platformdirs.user_cache_path("torchbisect")
        self.root = writable_directory(Path(named).expanduser().absolute(), option=option)
        for place in (self.venvs, self.unfinished, self.wheels, self.journal, self.locks):
            writable_directory(place, option=option)

    @property
    def venvs(self) -> Path:
        """The finished environments, one folder each."""
        return self.root / "venvs"

    @property
    def unfinished(self) -> Path:
        """Environments that aren't finished, and ones that are being thrown away; nothing in here is ever used."""
        return self.root / "making"

    @property
    def wheels(self) -> Path:
        """The installer's own cache."""
        return self.root / "uv"

    @property
    def bytecode(self) -> Path:
        """The byte code that environments share."""
        return self.root / "bytecode"

    @property
    def journal(self) -> Path:
        """What was answered before, kept by the probe."""
        return self.root / "journal"

    @property
    def locks(self) -> Path:
        """The lock files; never removed, they are empty."""
        return self.root / "locks"

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
        """Whether an environment is there, whole."""
        return (self.venvs / key / FACTS_FILE).exists()

    def mark_used(self, key: str) -> None:
        """Note that an environment is used now, for the order in which they are thrown away."""
        with contextlib.suppress(OSError):
            os.utime(self.venvs / key / FACTS_FILE)

    def environments(self) -> list[CachedEnvironment]:
        """All finished environments, the longest unused first."""
        found = []
        for place in self.venvs.iterdir():
            with contextlib.suppress(OSError):
                found.append(CachedEnvironment(place.name, place, (place / FACTS_FILE).stat().st_mtime))
        return sorted(found, key=lambda kept: kept.used)

    def free(self) -> int:
        """The bytes that can still be written here."""
        return free_bytes(self.root)

    def available(self) -> int:
        """The bytes that can still be kept here: what the disk has free, and no more than the limit leaves."""
        return self.free() if self.limit is None else min(self.free(), self.limit - folder_size(self.root))

    def evict(self, key: str) -> bool:
        """Throw one environment away, unless somebody leases it; whether it was done."""
        lock = self.lease_lock(key, shared=False)
        if not lock.try_acquire():
            return False
        try:
            doomed = self.unfinished / f"{_REMOVED}{uuid.uuid4().hex}"
            try:
                os.rename(self.venvs / key, doomed)
            except FileNotFoundError:
                return False
            remove_tree(doomed)
            return True
        finally:
            lock.release()

    def evict_oldest(self, notify: Notify = silent, *, sparing: str | None = None) -> bool:
        """Throw away the environment that was longest unused among those that nobody leases; whether there was one.

        Args:
            notify: told which.
            sparing: the one that is about to be used and not leased yet.
        """
        for kept in self.environments():
            if kept.key != sparing and self.evict(kept.key):
                notify(f"made room: removed the environment {kept.key}, last used {_ago(kept.used)} ago")
                return True
        return False

    def make_room(
        self, needed: int, *, notify: Notify = silent, reclaim: Callable[[list[str]], None] | None = None
    ) -> None:
        """Throw environments away, longest unused first, until ``needed`` bytes are free.

        Args:
            needed: bytes.
            notify: told of each that goes.
            reclaim: takes these packages out of the wheels; most of what an environment holds is linked from there and
                becomes free only then.

        Raises:
            DiskFull: if there is nothing more to throw away and still too little room.
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
        """Throw environments away, longest unused first, until the folder is under its limit or nothing more can go.

        The arguments are those of ``make_room`` and ``evict_oldest``.
        """
        while self.limit is not None and folder_size(self.root) > self.limit:
            if not self._evict_one(notify, reclaim, sparing):
                notify(f"{self.root} is over its limit of {format_bytes(self.limit)}: all that is left there is in use")
                break

    def _evict_one(
        self, notify: Notify, reclaim: Callable[[list[str]], None] | None, sparing: str | None = None
    ) -> bool:
        """Throw one environment away, and the packages that none of the others holds; whether that freed anything."""
        gone = self.evict_oldest(notify, sparing=sparing)
        remove_unused_bytecode(self.bytecode)
        unused = self.unlinked_packages() if reclaim else []
        if reclaim and unused:
            before = self.free()
            reclaim(unused)
            gone = gone or self.free() > before
        return gone

    def unlinked_packages(self) -> list[str]:
        """The packages among the wheels of which no environment holds a link any more."""
        names: set[str] = set()
        for archive in (self.wheels / "archive-v0").glob("*"):
            infos = [place.name for place in archive.glob("*.dist-info")]
            if infos and not _linked(archive):
                names.update(info.partition("-")[0] for info in infos)
        return sorted(names)

    def sweep(self) -> None:
        """Remove what a run that died left half made; what a living one is making stays."""
        with disk_errors(self.unfinished):
            for place in list(self.unfinished.iterdir()):
                lock = self.install_lock("gone" if place.name.startswith(_REMOVED) else place.name)
                if lock.try_acquire():
                    remove_tree(place)
                    lock.release()
        lock = self.wheels_lock(shared=False)
        if lock.try_acquire():
            for pattern in (".tmp*", "*/.tmp*"):
                for place in self.wheels.glob(pattern):
                    remove_tree(place)
            lock.release()

    def __str__(self) -> str:
        return f"{self.root} ({format_bytes(self.free())} free)"


def remove_tree(place: Path) -> None:
    """Remove a folder and all in it, folders without write permission too; what can't be removed stays."""
    if place.is_dir() and not place.is_symlink():
        for folder, _, _ in os.walk(place):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(place, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            place.unlink()


def _linked(folder: Path) -> bool:
    """Whether any file in a folder has another name elsewhere."""
    return any(status.st_nlink > 1 for status in _statuses(folder))


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(place, name))


def _ago(moment: float) -> str:
    seconds = max(time.time() - moment, 0.0)
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
