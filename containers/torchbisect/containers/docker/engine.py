"""Container engine: connection, errors with a clear message, labels, and removal of leftovers."""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import io
import json
import os
import platform
import tarfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import docker
import docker.errors
import requests.exceptions
import urllib3.exceptions
from docker.models.containers import Container

from torchbisect.containers.process.processes import owner, owner_is_dead
from torchbisect.containers.store.disk import disk_errors, is_disk_full_message
from torchbisect.containers.store.run_folder import ENGINE_NOTE, run_folder
from torchbisect.core.errors import DiskFull, InputError, MachineError, TorchbisectError

#: Label of everything that torchbisect makes in an engine; its value is the purpose.
LABEL = "torchbisect"
#: Label with the host and process that made a container, so that a later run can tell if its maker is dead.
OWNER_LABEL = "torchbisect.owner"
# Label with the name of the connection over which a container was made; with its end the container goes too.
_CONNECTION_LABEL = "torchbisect.connection"

#: The variable that names the network of installs and of image builds, such as ``host``, if the engine's default does
#: not work.
NETWORK_VARIABLE = "TORCHBISECT_DOCKER_NETWORK"

#: Seconds that an engine may take for one answer: a download of gigabytes prints no progress.
_SILENCE = 3600
# Seconds that the end of a connection waits for a container that is being made.
_MAKING = 60.0
#: Variables that name an engine.
_ENGINE_VARIABLES = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
_ENDED_LONG_AGO = datetime.timedelta(hours=1)
#: Exceptions of docker-py and of the libraries below it.
ENGINE_EXCEPTIONS = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)


class Engine:
    """The engine that ``DOCKER_HOST`` names, or the local one."""

    def __init__(
        self, variables: dict[str, str] | None = None, *, timeout: int = 30, runtime: str | None = None
    ) -> None:
        """Connect. Raise ``MachineError`` if no engine answers: foreign code is never run without a container.

        ``variables`` name another engine than those of this process; ``timeout`` is in seconds, for the connection.
        ``runtime`` is the engine's name of an OCI runtime for all containers, such as ``runsc``.
        """
        self._runtime = runtime
        self._name = uuid.uuid4().hex
        self._being_made: set[threading.Thread] = set()
        self._variables = {name: os.environ[name] for name in _ENGINE_VARIABLES if name in os.environ}
        self._variables = self._variables if variables is None else variables
        try:
            self.client = docker.from_env(timeout=timeout, environment=self._variables)
            self.information: dict[str, Any] = self.client.info()
            self.client.api.timeout = _SILENCE
        except (*ENGINE_EXCEPTIONS, ValueError) as error:  # ValueError: DOCKER_HOST is no address
            reason = " ".join(str(error).split())[:300]
            raise MachineError(
                f"no container engine answers ({reason}): start it (`dockerd`, or `systemctl start docker`), or let "
                "DOCKER_HOST name one; without a sandbox, `--sandbox venv` runs the script on this machine itself"
            ) from error
        if self.information.get("OSType", "linux") != "linux":
            raise MachineError("the container engine runs no Linux containers: let DOCKER_HOST name one that does")

    @property
    def identity(self) -> str:
        """A name for this engine, the same every time; part of the names of local lock files."""
        return str(self.information.get("ID") or self.information.get("Name") or "engine").replace(":", "")[:12]

    def create(self, image: str, **options: Any) -> Container:
        """Return a container, not started, under the runtime that was chosen and with the limits of ``options``.

        Raises:
            InputError: the engine does not know the runtime, or would use another one.
            MachineError: the engine leaves out the limit on memory or on processes.
            docker.errors.DockerException: the engine refuses for another reason.
        """
        named: dict[str, Any] = {} if self._runtime is None else {"runtime": self._runtime}
        try:
            container = self._created(lambda: self.client.containers.create(image, **named, **options))
        except docker.errors.APIError as error:
            if not named or "runtime" not in str(error.explanation):
                raise
            raise InputError(
                f"the container engine has no runtime {self._runtime} (it has {self._runtimes()}): correct --runtime, "
                "or add it to the engine's configuration"
            ) from error
        try:
            self._check(container.attrs.get("HostConfig") or {}, options)
        except TorchbisectError:
            remove(container)
            raise
        return container

    def _created(self, create: Callable[[], Container]) -> Container:
        """Have the engine make a container, in a thread of its own: an interrupt loses none that is being made."""
        made: Future[Container] = Future()

        def work() -> None:
            try:
                made.set_result(create())
            except BaseException as error:
                made.set_exception(error)
            finally:
                self._being_made.discard(thread)

        thread = threading.Thread(target=work, daemon=True, name="torchbisect-create")
        self._being_made.add(thread)
        thread.start()
        return made.result()

    def _runtimes(self) -> str:
        known = self.information.get("Runtimes")
        return ", ".join(sorted(known)) if isinstance(known, dict) else "others"

    def _check(self, made: dict[str, Any], options: dict[str, Any]) -> None:
        """Raise an error if a container was made without what was asked: engines leave out silently what they can't."""
        if self._runtime is not None and made.get("Runtime") != self._runtime:
            raise InputError(
                f"the container engine does not take the runtime {self._runtime} for one container: leave --runtime "
                "out, and make it the default in the engine's configuration"
            )
        for option, key, what in (("mem_limit", "Memory", "memory"), ("pids_limit", "PidsLimit", "processes")):
            # Docker without control groups, as a rootless one with cgroups v1, keeps the number and limits nothing.
            is_left_out = made.get(key) != options.get(option) or self.information.get("CgroupDriver") == "none"
            if options.get(option) and is_left_out:
                raise MachineError(
                    f"the container engine does not limit {what}, as a rootless one can't with cgroups v1: "
                    "let DOCKER_HOST name one that does"
                )

    def labels(self, purpose: str) -> dict[str, str]:
        """Return the labels of an object that this process makes now, and note for later runs that it uses this engine.

        Raise ``DiskFull`` or ``MachineError`` if the note can't be written.
        """
        note = run_folder() / ENGINE_NOTE
        if not note.exists():
            with disk_errors(note):
                note.write_text(json.dumps(self._variables), encoding="utf-8")
        return {LABEL: purpose, OWNER_LABEL: f"{_machine()}/{owner()}", _CONNECTION_LABEL: self._name}

    def sweep(self) -> int:
        """Remove the containers that dead runs on this host left; return their number."""
        removed = 0
        with engine_errors("sweeping the engine"):
            for container in self.client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True):
                host, _, maker = container.labels.get(OWNER_LABEL, "").partition("/")
                if (host == _machine() and owner_is_dead(maker)) or _ended_long_ago(container):
                    remove(container)
                    removed += 1
        return removed

    def close(self) -> None:
        """Remove the containers that were made over this connection and are left, and close it.

        An interrupt may have come between the making of a container and the block that removes it.
        """
        for thread in list(self._being_made):
            thread.join(_MAKING)
        with contextlib.suppress(*ENGINE_EXCEPTIONS):
            mine: dict[str, Any] = {"label": f"{_CONNECTION_LABEL}={self._name}"}
            for container in self.client.containers.list(all=True, filters=mine, ignore_removed=True):
                remove(container)
        with contextlib.suppress(*ENGINE_EXCEPTIONS):
            self.client.close()


@functools.cache
def _machine() -> str:
    """Return a name for this machine: several machines of one host name may use one engine."""
    identity = b""
    with contextlib.suppress(OSError):
        identity = Path("/etc/machine-id").read_bytes().strip()
    return f"{platform.node()}-{hashlib.sha256(b'torchbisect' + identity).hexdigest()[:8]}"


def _ended_long_ago(container: Container) -> bool:
    """Return true for a container that has ended and whose maker, wherever it is, has not removed it for an hour.

    A maker that can't be looked at from here may be a run in a container that is not there any more.
    """
    state = container.attrs.get("State")
    if not isinstance(state, dict) or state.get("Status") != "exited":
        return False
    try:
        ended = datetime.datetime.fromisoformat(str(state["FinishedAt"])[:19]).replace(tzinfo=datetime.timezone.utc)
    except (KeyError, ValueError):
        return False
    return datetime.datetime.now(datetime.timezone.utc) - ended > _ENDED_LONG_AGO


def install_network() -> str | None:
    """Return the network that the user named for installs and image builds; ``None`` for the engine's default."""
    return os.environ.get(NETWORK_VARIABLE) or None


def remove(container: Container) -> None:
    """Kill and remove a container with its anonymous volumes; do nothing if it is removed already."""
    with contextlib.suppress(*ENGINE_EXCEPTIONS):
        container.remove(force=True, v=True)


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn an engine's errors into ``DiskFull`` if its disk is full, and else into ``MachineError``."""
    try:
        yield
    except ENGINE_EXCEPTIONS as error:
        message = " ".join(str(getattr(error, "explanation", None) or error).split())
        if is_disk_full_message(message):
            raise volume_full() from error
        raise MachineError(f"the container engine failed at {what}: {message[:400]}") from error


def volume_full() -> DiskFull:
    """Return the error for an engine whose disk is full."""
    return DiskFull(
        "the container engine's disk is full: free some space there, for example with `torchbisect cache --prune`, "
        "then give the same command again"
    )


def archive(files: dict[str, bytes], mode: int = 0o644) -> bytes:
    """Return a tar of these files, as the engine takes it; by default everybody may read them."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as packed:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(body), mode, int(time.time())
            packed.addfile(entry, io.BytesIO(body))
    return whole.getvalue()
