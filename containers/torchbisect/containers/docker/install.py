"""Installation in containers, in three steps, of which only the first has a network.

First uv installs from wheels: it unpacks them and runs none of their code. Then the files are compiled to byte code,
which reads them and runs none either. At last torch is imported as foreign code is run, by ``DockerEnvironments``. With
source packages the first step runs the code of their builds, as a user of its own who can write to nothing else.
"""

from __future__ import annotations

import contextlib
import os
import tarfile
import tempfile
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path

from docker.models.containers import Container
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from torchbisect.containers.docker.container_processes import held
from torchbisect.containers.docker.engine import archive, engine_errors, install_network, remove, volume_full
from torchbisect.containers.docker.volume import INSTALLER, MAKING, WHEELS, Volume
from torchbisect.containers.index.indexes import Indexes, file_path
from torchbisect.containers.process.run_command import Cancelled, CappedText, Completed
from torchbisect.containers.store.disk import is_disk_full_message
from torchbisect.containers.venv.installer import (
    PROXIES,
    blame,
    check_no_secrets,
    install_options,
    requirements,
    retry_install,
)
from torchbisect.containers.venv.uv_errors import error_from_uv, main_line
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, InstallFailed, MachineError
from torchbisect.core.retry import DEFAULT_RETRY, Notify, RetryPolicy, silent
from torchbisect.core.scrub import scrub_secrets
from torchbisect.core.timing import timed

_LOCAL = "/opt/torchbisect-local"
_CERTIFICATES = f"{_LOCAL}/certificates.pem"
#: Seconds after which an install container ends by itself, if its maker died and no other run removed it.
_LIFETIME = "14400"


@dataclass(frozen=True)
class ContainerInstaller:
    """Makes environments in the volume, with ``packages`` beside torch.

    The folders of this machine among the indexes are copied into the container. Packages come from wheels only, unless
    the indexes allow source packages.
    """

    volume: Volume
    indexes: Indexes
    packages: tuple[str, ...] = ()
    notify: Notify = silent
    retry: RetryPolicy = DEFAULT_RETRY

    @timed("install", "environment")
    def make(self, key: str, build: Build, cancel: threading.Event | None = None) -> str:
        """Make the environment of a build in the volume, and return its temporary path.

        Raise the errors of ``Installer.make``.
        """
        check_no_secrets(self.indexes)
        folder, user = f"{MAKING}/{key}", self._user(key)
        self.volume.prepare(folder, user)
        with engine_errors("making a container to install in"):
            container = self.volume.create(
                ["sleep", _LIFETIME],
                network_mode=install_network() or "bridge",
                environment=self._variables(),
                user=user,
            )
        watching = threading.Event()
        try:
            with engine_errors("starting a container to install in"), held(container):
                self._copy_in(container, build)
                if cancel is not None:
                    threading.Thread(target=_watch, args=(container, cancel, watching), daemon=True).start()
                self._install(container, folder, build, cancel)
        except MachineError:
            if cancel is not None and cancel.is_set():
                raise Cancelled from None
            raise
        finally:
            watching.set()
        self.volume.compile_bytecode(folder)
        return folder

    def _user(self, key: str) -> int:
        """Return the user of an install; foreign code gets one that owns nothing else."""
        return 20_000 + zlib.crc32(key.encode()) % 40_000 if self.indexes.allow_sdists else INSTALLER

    def _install(self, container: Container, folder: str, build: Build, cancel: threading.Event | None) -> None:
        # uv starts the environment's Python, which would run the .pth files of an earlier try.
        fresh = f"find {folder} -mindepth 1 -delete && exec uv venv --relocatable --python python3 {folder}"
        options = ["uv", "--no-progress", "--color", "never", *install_options(self.indexes.allow_sdists)]
        wanted = requirements(self._localized(build), self.packages)
        command = [*options, "--python", f"{folder}/bin/python", "--", *wanted]

        def ask() -> None:
            made = self._run(container, ["sh", "-c", fresh])
            if made.status and is_disk_full_message(made.errors):
                raise volume_full()
            if made.status:
                raise MachineError(f"no environment could be made in the volume: {main_line(made.errors)}")
            done = self._run(container, command)
            if cancel is not None and cancel.is_set():
                raise Cancelled
            if done.status and is_disk_full_message(done.errors):
                raise volume_full()
            if done.status:
                raise error_from_uv(done.errors, build, Path(folder), packages=self.packages, indexes=str(self.indexes))

        def resolve(package: str) -> str:
            aside = ["--dry-run", "--target", f"{folder}/none", "--python", "python3", "--", package]
            done = self._run(container, [*options, *aside])
            return done.errors if done.status else ""

        try:
            retry_install(ask, build, notify=self.notify, retry=self.retry, cancel=cancel)
        except InstallFailed as failed:
            raise blame(failed, self.packages, resolve, str(self.indexes)) from None

    def _run(self, container: Container, command: list[str]) -> Completed:
        """Run a program in the container, with output and errors apart."""
        output, errors = CappedText(1 << 20), CappedText(1 << 20)
        api = container.client.api if container.client else self.volume.engine.client.api
        with engine_errors("installing in a container"):
            identity = api.exec_create(container.id, command)["Id"]
            for out, err in api.exec_start(identity, stream=True, demux=True):
                output.add(out or b"")
                errors.add(err or b"")
            status = api.exec_inspect(identity)["ExitCode"]
        if status is None:
            raise MachineError("the container that was installed in ended before it was done")
        return Completed(status, output.text(), errors.text(), 0.0)

    def _variables(self) -> dict[str, str]:
        """Return uv's variables in the container: the indexes, and this machine's proxies, which lead to them."""
        variables = self._reachable().uv_variables()
        proxies = [*PROXIES, *map(str.lower, PROXIES)]
        variables.update({name: os.environ[name] for name in proxies if name in os.environ})
        if _certificates() is not None:
            variables["SSL_CERT_FILE"] = _CERTIFICATES
        return {
            **variables,
            "HOME": "/tmp",
            # What foreign code wrote is thrown away with the container.
            "UV_CACHE_DIR": "/tmp/sdists" if self.indexes.allow_sdists else WHEELS,
            "UV_LINK_MODE": "copy" if self.indexes.allow_sdists else "hardlink",
            "UV_HTTP_RETRIES": "0",
            "UV_HTTP_TIMEOUT": "120",
            "UV_PYTHON_DOWNLOADS": "never",
        }

    def _reachable(self) -> Indexes:
        """Return the indexes as the container can use them: with folders of links, but without indexes on disk.

        Raise ``InputError`` if the main index is a folder on this machine.
        """
        if (self.indexes.index_url or "").startswith("file://"):
            raise InputError(
                f"{self.indexes.index_url} is on this machine's disk, which a container does not see: serve it over "
                "HTTP, or give its wheels by UV_FIND_LINKS"
            )
        extras = tuple(url for url in self.indexes.extra_index_urls if not url.startswith("file://"))
        for url in self.indexes.extra_index_urls:
            if url not in extras:
                self.notify(f"left out in containers: {scrub_secrets(url)} is on this machine's disk")
        pages = [link for link in self.indexes.find_links if not _local_folder(link)]
        local = [_LOCAL] if len(pages) < len(self.indexes.find_links) else []
        return Indexes(self.indexes.index_url, extras, tuple(pages + local))

    def _copy_in(self, container: Container, build: Build) -> None:
        """Copy certificates, and wheels from this machine's disk, into the container."""
        certificates = _certificates()
        with engine_errors("copying into a container"), tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                for wheel in self._wheels(build):
                    tar.add(wheel, f"{_LOCAL.lstrip('/')}/{wheel.name}", filter=_readable)
            packed.seek(0)
            container.put_archive("/", packed)
            if certificates is not None:
                container.put_archive("/", archive({_CERTIFICATES.lstrip("/"): certificates}))

    def _wheels(self, build: Build) -> list[Path]:
        """Return the wheels on this machine's disk for this build: its own, and packages other than torch."""
        found = [file_path(build.wheel)] if build.wheel and build.wheel.startswith("file://") else []
        for folder in filter(None, map(_local_folder, self.indexes.find_links)):
            for wheel in sorted(folder.glob("*.whl")):
                with contextlib.suppress(InvalidWheelFilename):
                    name, version, _, _ = parse_wheel_filename(wheel.name)
                    fits = name != canonicalize_name("torch") or version.public == build.name
                    if fits and self.volume.image.interpreter.accepts(wheel.name):
                        found.append(wheel)
        return found

    def _localized(self, build: Build) -> Build:
        """Return a build with its wheel's path in the container, if the wheel is on this machine's disk."""
        if not build.wheel or not build.wheel.startswith("file://"):
            return build
        name = file_path(build.wheel).name.replace("+", "%2B")
        return Build(build.version, build.channel, build.date, build.commit, f"file://{_LOCAL}/{name}")


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Let every user of a container read a file."""
    entry.mode, entry.uid, entry.gid = 0o644, 0, 0
    return entry


def _watch(container: Container, cancel: threading.Event, done: threading.Event) -> None:
    """Remove a container when ``cancel`` is set."""
    while not done.wait(0.1):
        if cancel.is_set():
            remove(container)
            return


def _local_folder(link: str) -> Path | None:
    """Return the folder of this machine that a ``--find-links`` names, or ``None`` for a page."""
    if "://" in link and not link.startswith("file://"):
        return None
    folder = file_path(link) if link.startswith("file://") else Path(link).expanduser()
    return folder if folder.is_dir() else None


def _certificates() -> bytes | None:
    """Return the certificates that this machine was told to trust, as behind some proxies, or ``None``."""
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        with contextlib.suppress(OSError):
            if os.environ.get(name):
                return Path(os.environ[name]).read_bytes()
    return None
