"""Environments in containers, for scripts that must not touch this machine."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import struct
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import docker.errors
from docker.models.containers import Container

from torchbisect.containers.docker.container_processes import (
    OUT_OF_MEMORY_MESSAGE,
    SCRATCH,
    Confinement,
    DockerProcess,
    Streams,
    kill_container,
)
from torchbisect.containers.docker.engine import Engine, engine_errors
from torchbisect.containers.docker.images import ImageOptions, find_image
from torchbisect.containers.docker.install import ContainerInstaller
from torchbisect.containers.docker.volume import MAKING, VENVS, VOLUME_NAME, Volume
from torchbisect.containers.docker.watch import under_watch
from torchbisect.containers.environment import Facts, Venv, check_gpu, dump_facts, parse_facts, read_facts
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.process.run_command import OUTPUT_LIMIT, Cancelled, CappedText, Completed
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import disk_errors
from torchbisect.containers.store.lease import Leases
from torchbisect.containers.venv.copies import copy_name, overlay_identity
from torchbisect.containers.venv.installer import environment_key
from torchbisect.core.build import Build, Channel
from torchbisect.core.decode import DecodeError
from torchbisect.core.errors import DiskFull, InputError, MachineError, TorchbisectError
from torchbisect.core.retry import DEFAULT_RETRY, Notify, RetryPolicy, silent

#: The folder in a container that gets the files of a command's working directory.
WORK = f"{SCRATCH}/work"

#: Script that unpacks files from standard input, then becomes the command, whose standard input is empty.
_UNPACK = f"""
import io, os, struct, sys, tarfile
size = struct.unpack(">Q", sys.stdin.buffer.read(8))[0]
with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read(size))) as packed:
    packed.extractall({WORK!r}, **({{"filter": "data"}} if hasattr(tarfile, "data_filter") else {{}}))
os.chdir({WORK!r})
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.execv(sys.executable, [sys.executable] + sys.argv[1:])
"""


@dataclass(frozen=True)
class DockerEnvironment:
    """A build in the volume, run in containers that may only compute; see ``Environment``.

    ``python`` is the path of its Python in a container.
    """

    build: Build
    facts: Facts
    python: str
    volume: Volume
    confinement: Confinement
    local: ClassVar[bool] = False
    compiler_cache: ClassVar[None] = None

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> DockerProcess:
        """Start this environment's Python in a container of its own."""
        return DockerProcess(self._create([*arguments], extra, stdin="asked"))

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        directory: str | None = None,
        extra: Mapping[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> Completed:
        """Run this environment's Python until it ends, in a container of its own.

        The files of ``directory`` are copied in, and its path in arguments and variables is replaced.
        """
        packed: bytes | None = None
        if directory is not None:
            packed = _pack(Path(directory))
            arguments = ["-c", _UNPACK, *(_in_container(argument, directory) for argument in arguments)]
            extra = {name: _in_container(value, directory) for name, value in (extra or {}).items()}
        begun = time.monotonic()
        container = self._create([*arguments], extra, stdin="empty" if packed is None else "open")
        output, errors = CappedText(OUTPUT_LIMIT), CappedText(OUTPUT_LIMIT)
        try:
            with engine_errors("running a container"):
                streams = Streams(container, output.add, errors.add)
                container.start()
            streams.begin()
            if packed is not None:
                with contextlib.suppress(BrokenPipeError):
                    streams.send(struct.pack(">Q", len(packed)) + packed)
            in_time = _ended(streams.ended, begun + timeout, cancel)
        finally:
            status, out_of_memory = kill_container(container)
        streams.ended.wait(2.0)
        streams.close()
        if out_of_memory:
            errors.add(OUT_OF_MEMORY_MESSAGE)
        if in_time and status is None:
            raise MachineError("the container engine went away while a script ran in it: see that it runs")
        return Completed(status if in_time else None, output.text(), errors.text(), time.monotonic() - begun)

    def _create(self, command: list[str], extra: Mapping[str, str] | None, *, stdin: str) -> Container:
        create = functools.partial(
            self.volume.engine.create,
            self.volume.image.identity,
            **under_watch([self.python, *command], python=self.python, stdin=stdin),
            environment={**_ENVIRONMENT, **(extra or {})},
            volumes=self.volume.mount(writable=False),
            labels=self.volume.engine.labels("run"),
        )
        with engine_errors("making a container"):
            try:
                return create(**self.confinement.options())
            except docker.errors.APIError as error:
                if "nr_inodes" not in str(error.explanation):
                    raise
                return create(**self.confinement.options(count_files=False))


#: The variables in a container; none of this machine's are among them.
_ENVIRONMENT = {
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "USER": "nobody",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class DockerEnvironments:
    """The environments of one run, in a container engine's volume; see ``Environments``.

    Lock files lie on this machine: two machines that use one engine at the same time don't see each other's locks.
    """

    replaces_packages: ClassVar[bool] = False

    def __init__(
        self,
        cache: Cache,
        indexes: Indexes,
        *,
        image: ImageOptions | None = None,
        packages: Sequence[str] = (),
        confinement: Confinement | None = None,
        volume: str = VOLUME_NAME,
        notify: Notify = silent,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> None:
        """Connect to the engine, and find or build the image; ``cache`` has the lock files.

        ``packages`` are requirements that are installed in every environment beside torch. Raise ``MachineError`` if no
        engine answers or the image can't be built, ``InputError`` if the named image lacks something.
        """
        self._cache = cache
        self._packages = tuple(packages)
        self._confinement = confinement or Confinement()
        self._notify = notify
        self._indexes = indexes
        self._leases = Leases(cache)
        self.engine = Engine(runtime=self._confinement.runtime)
        try:
            self.engine.sweep()
            self.image = find_image(self.engine, image, notify=notify)
            self.volume = Volume(self.engine, self.image, volume)
            self._sweep_volume()
        except BaseException:
            self.engine.close()
            raise
        self._installer = ContainerInstaller(self.volume, indexes, self._packages, notify, retry)

    @property
    def interpreter(self) -> Interpreter:
        """The image's Python; it decides which wheels fit."""
        return self.image.interpreter

    def environment(self, build: Build) -> DockerEnvironment:
        """Return the environment of a build, made if it isn't there; see ``Environments``."""
        found = self._lease(build, None)
        if found is None:
            raise Cancelled
        return found

    def prefetch(self, build: Build, cancel: threading.Event) -> None:
        """Make an environment that may be needed soon, without a lease; failures are not reported."""
        with contextlib.suppress(TorchbisectError, Cancelled):
            if not self.has(build) and self._lease(build, cancel) is not None:
                self.release(build)

    def has(self, build: Build) -> bool:
        """Return true if the environment is installed already."""
        return self.volume.facts(self.key(build)) is not None

    def release(self, build: Build) -> None:
        """Give back one lease."""
        self._leases.release(self._lock_name(self.key(build)))

    def close(self) -> None:
        """Give back all leases, and remove everything that was made except the volume and the image."""
        self._leases.close()
        self.volume.close()
        self.engine.close()

    def key(self, build: Build) -> str:
        """Return the name of a build's environment in the volume."""
        base = self.image.identity
        return environment_key(build, self.interpreter.abi, base, self._packages, self._indexes)

    @contextlib.contextmanager
    def with_overlay(self, build: Build, layer: Mapping[str, bytes | None], commit: str) -> Iterator[DockerEnvironment]:
        """Make a copy of a build's environment in the volume, with other files in it; see ``Environments``."""
        base = self.environment(build)
        name = copy_name(commit, base.python)
        folder, lock = f"{MAKING}/{name}", self._cache.install_lock(self._lock_name(name))
        waiting = f"another run uses the copy with the Python of {commit[:10]}: waiting for it"
        try:
            with lock.held(waiting, self._notify), self._unfinished(name), contextlib.ExitStack() as stack:
                stack.callback(self._discard, folder)
                self.volume.overlay_files(f"{VENVS}/{self.key(build)}", folder, layer, commit)
                stands_for, facts = overlay_identity(build, base.facts, commit)
                yield self._environment(stands_for, facts, folder)
        finally:
            self.release(build)

    def with_package(self, build: Build, requirement: str) -> AbstractContextManager[DockerEnvironment]:
        """Raise ``InputError``: an installed environment in the volume is never changed."""
        raise InputError(f"{requirement} can't replace a package of torch {build} in a container: use --sandbox venv")

    def host_venv(self, build: Build) -> Venv:
        """Raise ``InputError``: no environment in the volume is a virtual environment on this machine."""
        raise InputError(f"torch {build} is in a container and not in a virtual environment: use --sandbox venv")

    def evict_oldest(self) -> bool:
        """Remove the environment unused longest among those that no run leases; return true if there was one."""
        for kept in self.volume.environments():
            with self._cache.lease_lock(self._lock_name(kept.key), shared=False).if_free() as free:
                if free:
                    self.volume.remove(f"{VENVS}/{kept.key}")
                    self.volume.remove_unused_wheels()
                    self._notify(f"made room: removed the environment {kept.key} from the engine")
                    return True
        return False

    def _lease(self, build: Build, cancel: threading.Event | None) -> DockerEnvironment | None:
        """Lease the environment of a build, made if absent; return ``None`` if ``cancel`` ended the wait."""
        if build.channel is Channel.INSTALLED:
            raise InputError("the torch installed on this machine isn't in a container: name a build with --torch")
        key = self.key(build)
        folder = f"{VENVS}/{key}"

        def find() -> DockerEnvironment | None:
            text = self.volume.facts(key)
            if text is None:
                return None
            try:
                facts = parse_facts(text)
            except DecodeError:  # a run was killed while it wrote them
                facts = read_facts(self._environment(build, Facts("", None, "", ""), folder).run, build)
            self.volume.write_facts(folder, dump_facts(facts))
            return self._environment(build, facts, folder)

        def make() -> None:
            self._notify(f"installing torch {build} in a container")
            self._make(build, key, cancel)

        name = self._lock_name(key)
        return self._leases.acquire(
            name, build, find=find, exists=lambda: self.has(build), make=make, notify=self._notify, cancel=cancel
        )

    def _make(self, build: Build, key: str, cancel: threading.Event | None) -> None:
        """Install, import torch as foreign code would be run, and only then name the environment."""
        with self._unfinished(key):
            self._fill(build, key, cancel)

    def _fill(self, build: Build, key: str, cancel: threading.Event | None) -> None:
        while True:
            try:
                folder = self._installer.make(key, build, cancel)
                break
            except DiskFull:
                self._discard(f"{MAKING}/{key}")
                self._cache.give_back()
                if not self.evict_oldest():
                    raise
            except BaseException:
                self._discard(f"{MAKING}/{key}")
                raise
        try:
            trial = self._environment(build, Facts("", None, "", ""), folder)
            facts = read_facts(trial.run, build)
            if self._confinement.gpu is not None:
                check_gpu(trial)
            self.volume.write_facts(folder, dump_facts(facts))
            script = f"mkdir -p {VENVS} && rm -rf {VENVS}/{key} && mv {folder} {VENVS}/{key}"
            self.volume.run_program(["sh", "-c", script])
        except BaseException:
            self._discard(folder)
            raise

    @contextlib.contextmanager
    def _unfinished(self, name: str) -> Iterator[None]:
        """Note on this machine that a folder is being made in the volume, for the run after a kill or a failure."""
        note = self._cache.install_lock(self._lock_name(name)).path
        with disk_errors(note):
            note.write_text(self.volume.name, encoding="utf-8")
        yield
        with contextlib.suppress(OSError):
            os.truncate(note, 0)

    def _sweep_volume(self) -> None:
        """Remove the unfinished folders of dead runs from the volume; their install locks are free and say so."""
        prefix = self._lock_name("")
        for note in self._cache.locks.glob(f"{prefix}*.make"):
            name = note.name.removeprefix(prefix).removesuffix(".make")
            with contextlib.suppress(OSError), self._cache.install_lock(self._lock_name(name)).if_free() as free:
                if free and note.read_text(encoding="utf-8", errors="replace") == self.volume.name:
                    for path in (name, f"{name}.json"):
                        self.volume.remove(f"{MAKING}/{path}")
                    os.truncate(note, 0)

    def _discard(self, folder: str) -> None:
        """Remove an unfinished environment; if that fails, the next install of the build removes it."""
        with contextlib.suppress(TorchbisectError):
            self.volume.remove(folder)

    def _environment(self, build: Build, facts: Facts, folder: str) -> DockerEnvironment:
        return DockerEnvironment(build, facts, f"{folder}/bin/python", self.volume, self._confinement)

    def _lock_name(self, key: str) -> str:
        """Return the name of an environment's lock files; the cache's folder has those of all engines."""
        return f"docker-{self.engine.identity}-{key}"


def _ended(event: threading.Event, until: float, cancel: threading.Event | None) -> bool:
    """Wait for an event; return true if it came before ``until``. Raise ``Cancelled`` if ``cancel`` was set."""
    while not event.wait(min(0.2, max(0.0, until - time.monotonic()))):
        if cancel is not None and cancel.is_set():
            raise Cancelled
        if time.monotonic() >= until:
            return False
    return True


def _pack(folder: Path) -> bytes:
    """Return a tar of a folder's files and folders, without links and special files."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as packed:
        packed.add(folder, ".", filter=lambda entry: entry if entry.isfile() or entry.isdir() else None)
    return whole.getvalue()


def _in_container(text: str, directory: str) -> str:
    """Return text with the path of a folder on this machine replaced by its path in the container."""
    return text.replace(os.path.abspath(directory), WORK)
