"""Virtual environments on this machine, one for each build, kept in the cache and leased to runs."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import math
import os
import platform
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from torchbisect.containers.environment import IMPORT_TIMEOUT, Facts, Venv, dump_facts, load_facts, read_facts
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.process.processes import sweep_processes
from torchbisect.containers.process.run_command import Cancelled
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.bytecode import (
    SAVE_BYTECODE,
    bytecode_folder,
    imported_modules,
    link_known_bytecode,
)
from torchbisect.containers.store.cache import FACTS_FILE, Cache
from torchbisect.containers.store.disk import disk_errors, format_bytes, writable_directory
from torchbisect.containers.store.lease import Leases
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import sweep_run_folders, unique_folder
from torchbisect.containers.venv.copies import copied_environment, overlaid_environment
from torchbisect.containers.venv.install_size import InstallSize, size_in_words
from torchbisect.containers.venv.installer import LARGE, Installer, environment_key, requirements
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import DiskFull, InputError, TorchbisectError
from torchbisect.core.retry import DEFAULT_RETRY, Notify, RetryPolicy, silent

#: The number of compiled modules from which on it is worth a process to keep their byte code for other environments.
_WORTH_KEEPING = 50
#: The modules that one process compiles, as a command has a longest length.
_MOST_IN_A_COMMAND = 1000
#: The folder for what agents find out about a build: in its environment, and in the cache for the installed torch.
_COMPILER_CACHE = "compiler-cache"


class VenvEnvironments:
    """The virtual environments of one run. Safe to use from several threads and processes."""

    replaces_packages: ClassVar[bool] = True

    def __init__(
        self,
        cache: Cache,
        interpreter: Interpreter,
        indexes: Indexes,
        *,
        packages: Sequence[str] = (),
        notify: Notify = silent,
        announce: Notify = silent,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> None:
        """Remove what dead runs left.

        ``packages`` are requirements that are installed in every environment beside torch. ``announce`` is told the
        size of the first download before it begins, and once if the cache can't stay within its limit.
        """
        self._cache = cache
        self._interpreter = interpreter
        self._notify = notify
        self._packages = tuple(packages)
        self._announce = announce
        self._announced: set[str] = set()
        self._installs = 0
        self._installer = Installer(cache, interpreter, indexes, self._packages, notify, retry)
        self._indexes = indexes
        self._leases = Leases(cache)
        self._guard = threading.Lock()
        self._homes: Path | None = None
        sweep_processes()
        cache.sweep()
        sweep_run_folders()

    @property
    def interpreter(self) -> Interpreter:
        """The Python that environments are made from; it decides which wheels fit."""
        return self._interpreter

    def environment(self, build: Build) -> Venv:
        """Return the environment of a build, made if it isn't there, and lease it; see ``Environments``."""
        if build.channel is Channel.INSTALLED:
            return self._installed(build)
        made = self._lease(build, None, notify=self._notify)
        if made is None:
            raise Cancelled
        return made

    def prefetch(self, build: Build, cancel: threading.Event) -> None:
        """Make an environment that may be needed soon, without a lease; failures are not reported."""
        if build.channel is Channel.INSTALLED or self.has(build):
            return
        with contextlib.suppress(TorchbisectError, Cancelled):
            if self._lease(build, cancel, notify=silent) is not None:
                self.release(build)

    def has(self, build: Build) -> bool:
        """Return true if the environment is installed already."""
        return build.channel is Channel.INSTALLED or self._cache.has_environment(self.key(build))

    def host_venv(self, build: Build) -> Venv:
        """Lease the environment of a build as a virtual environment on this machine; see ``Environments``."""
        return self.environment(build)

    @contextlib.contextmanager
    def with_package(self, build: Build, requirement: str) -> Iterator[Venv]:
        """Make a copy of a build's environment with one package in another version; see ``Environments``."""
        base = self.environment(build)
        name = f"altered-{hashlib.sha256(f'{self.key(build)} {requirement}'.encode()).hexdigest()[:12]}"
        try:
            with copied_environment(self._cache, base, name, f"{build} with {requirement}", self._notify) as python:
                self._installer.replace_package(python, build, requirement)
                yield replace(base, facts=self._read(build, python), python=python)
        finally:
            self.release(build)

    @contextlib.contextmanager
    def with_overlay(self, build: Build, layer: Mapping[str, bytes | None], commit: str) -> Iterator[Venv]:
        """Make a copy of a build's environment with other files in it; see ``Environments``."""
        base = self.environment(build)
        try:
            with overlaid_environment(self._cache, base, layer, commit) as environment:
                yield environment
        finally:
            self.release(build)

    def release(self, build: Build) -> None:
        """Give back one lease; the environment stays for the next run unless its room is needed."""
        key = self.key(build)
        if self._leases.release(key):
            self._cache.mark_used(key)

    def close(self) -> None:
        """Give back all leases, and remove the processes' home folders and what the cache has no room for."""
        self._leases.close()
        with self._guard:
            homes, self._homes = self._homes, None
        if homes:
            remove_tree(homes)
        if self._installs:
            at_once = threading.Event()
            at_once.set()
            with contextlib.suppress(TorchbisectError):
                self._cache.make_room(0, cancel=at_once)

    def key(self, build: Build) -> str:
        """Return the name of a build's environment in the cache."""
        python = self._interpreter
        return environment_key(build, python.abi, python.identity, self._packages, self._indexes)

    def _lease(self, build: Build, cancel: threading.Event | None, *, notify: Notify) -> Venv | None:
        """Lease the environment of a build, made if absent; return ``None`` if ``cancel`` ended the wait."""
        key = self.key(build)

        def find() -> Venv | None:
            if not self._cache.has_environment(key):
                return None
            facts = self._facts(build, self._cache.venvs / key)
            self._cache.mark_used(key)
            folder = self._cache.venvs / key
            kept = str(folder / _COMPILER_CACHE)
            return Venv(build, facts, folder / "bin" / "python", self._homes_folder(), compiler_cache=kept)

        def make() -> None:
            self._make(build, key, cancel, notify)

        exists = functools.partial(self._cache.has_environment, key)
        return self._leases.acquire(key, build, find=find, exists=exists, make=make, notify=notify, cancel=cancel)

    def _make(self, build: Build, key: str, cancel: threading.Event | None, notify: Notify) -> None:
        """Make room for an environment, and make it."""
        notify(f"installing torch {build}")
        with self._room(build, key, cancel) as size:
            if size.download >= LARGE:
                notify(f"installing torch {build}, {format_bytes(size.download)} to download")
                self._say_once("size", size_in_words(build, size, self._cache))
            self._install(build, key, cancel, size)
        self._installs += 1

    @contextlib.contextmanager
    def _room(self, build: Build, key: str, cancel: threading.Event | None) -> Iterator[InstallSize]:
        """Make room for an install and keep it; yield the size of the install.

        What is removed to make room may be a package that the install shares, which has to be fetched again.
        """
        wanted, over = requirements(build, self._packages), functools.partial(self._say_once, "limit")
        while True:
            present = self._cache.packages()
            with ThreadPoolExecutor(1, thread_name_prefix="size of the cache") as pool:
                taken = pool.submit(self._cache.taken)
                size = self._installer.size(wanted, build, cancel)
            with self._cache.reserved(
                key, size.disk, taken=taken.result(), notify=self._notify, warn=over, cancel=cancel
            ) as reserved:
                if not reserved:
                    raise Cancelled
                if self._cache.packages() >= present:
                    yield size
                    return

    def _say_once(self, what: str, text: str) -> None:
        with self._guard:
            said = what in self._announced
            self._announced.add(what)
        if not said:
            self._announce(text)

    def _install(self, build: Build, key: str, cancel: threading.Event | None, size: InstallSize) -> None:
        """Make an environment under a temporary name, and rename it when it is complete."""
        folder = self._cache.unfinished / key
        shared = self._cache.wheels_lock(shared=True)
        try:
            for attempt in itertools.count():
                remove_tree(folder)
                waiting = "another run is removing wheels from the cache: waiting for it"
                shared.acquire(waiting=waiting, notify=self._notify)
                try:
                    self._fill(folder, build, cancel, size)
                    break
                except DiskFull:
                    shared.release()
                    remove_tree(folder)
                    if not self._more_room(first=attempt == 0):
                        raise
            with disk_errors(self._cache.venvs):
                remove_tree(self._cache.venvs / key)
                os.rename(folder, self._cache.venvs / key)
        except BaseException:
            remove_tree(folder)
            raise
        finally:
            shared.release()

    def _more_room(self, *, first: bool) -> bool:
        """Remove an environment for an install that found the disk full; return true if another try may get further.

        Wheels that no environment holds are removed too. Without an environment to remove, that helps only at the first
        try: after it, these wheels are the ones that the install itself fetched.
        """
        evicted = self._cache.evict_oldest(self._notify)
        with self._cache.wheels_lock(shared=False).held():
            unused = self._cache.remove_unlinked()
        return evicted or (first and unused > 0)

    def _fill(self, folder: Path, build: Build, cancel: threading.Event | None, size: InstallSize) -> None:
        self._installer.make(folder, build, requirements(build, self._packages), cancel, size)
        if cancel is None:
            self._notify(f"importing torch {build} for the first time")
        python, site = folder / "bin" / "python", _site_packages(folder)
        store = bytecode_folder(self._cache.bytecode, self._interpreter)
        writable_directory(store, option="--cache-dir")
        known, trial = link_known_bytecode(store, site, self._interpreter), self._trial(build, python)
        missing = [path for name in self._imported_modules() - known if (path := site / name).is_file()]
        _compile(trial, missing, cancel)
        with ThreadPoolExecutor(1, thread_name_prefix="keep byte code") as pool:
            if len(missing) >= _WORTH_KEEPING:
                # Without the environment's .pth files and sitecustomize: saving runs no foreign code.
                save = ["-I", "-S", "-c", SAVE_BYTECODE, str(site), str(store)]
                pool.submit(trial.run, save, timeout=IMPORT_TIMEOUT, cancel=cancel)
            facts = self._read(build, python, cancel)
        with disk_errors(folder):
            (folder / FACTS_FILE).write_text(dump_facts(facts), encoding="utf-8")

    def _imported_modules(self) -> frozenset[str]:
        """Return the modules that torch imported in the environments that are there, and in the interpreter's own."""
        folders = [*self._cache.venvs.glob(f"*/{_COMPILER_CACHE}"), *self._cache.root.glob(f"{_COMPILER_CACHE}/*")]
        return imported_modules(folder / "imported-modules" for folder in folders)

    def _facts(self, build: Build, folder: Path) -> Facts:
        """Read the facts written after the install; ask again if the system has changed since."""
        facts = load_facts(folder / FACTS_FILE)
        if facts is None or platform.release() not in facts.platform:
            facts = self._read(build, folder / "bin" / "python")
            with disk_errors(folder):
                (folder / FACTS_FILE).write_text(dump_facts(facts), encoding="utf-8")
        return facts

    def _read(self, build: Build, python: Path, cancel: threading.Event | None = None) -> Facts:
        """Import torch with this Python, as a run would, and return the facts."""
        return read_facts(functools.partial(self._trial(build, python).run, cancel=cancel), build)

    def _trial(self, build: Build, python: Path) -> Venv:
        """Return an environment whose facts are not known yet."""
        user_base = self._interpreter.user_base if build.channel is Channel.INSTALLED else ""
        return Venv(build, Facts("", None, "", ""), python, self._homes_folder(), user_base)

    def _installed(self, build: Build) -> Venv:
        interpreter = self._interpreter
        if interpreter.installed_torch is None:
            raise InputError(f"{interpreter.path} has no torch: install one there, or name a build with --torch")
        trial, kept = self._trial(build, interpreter.path), self._cache.root / _COMPILER_CACHE / interpreter.identity
        return replace(trial, facts=read_facts(trial.run, build, imported=False), compiler_cache=str(kept))

    def _homes_folder(self) -> Path:
        """Return the folder of the processes' home folders."""
        with self._guard:
            if self._homes is None:
                self._homes = unique_folder("h")
            return self._homes


def _compile(environment: Venv, modules: Sequence[Path], cancel: threading.Event | None) -> None:
    """Compile modules on all cores with the environment's Python, which runs none of its ``.pth`` files for that."""
    cores = os.cpu_count() or 1
    command = ["-I", "-S", "-m", "compileall", "-q"]

    def compile_share(share: Sequence[Path]) -> None:
        environment.run([*command, *map(str, share)], timeout=IMPORT_TIMEOUT, cancel=cancel)

    count = cores * math.ceil(len(modules) / (cores * _MOST_IN_A_COMMAND))
    with ThreadPoolExecutor(cores, thread_name_prefix="compile") as pool:
        for _ in pool.map(compile_share, filter(None, (modules[number::count] for number in range(count)))):
            pass


def _site_packages(folder: Path) -> Path:
    return next(folder.glob("lib/python3*/site-packages"), folder / "lib")
