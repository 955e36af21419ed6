"""Volume for environments and wheels: only one, so that files of both can be hard links of each other.

Docker can mount a part of a volume only since version 26, so every container gets the whole. Users keep them apart:

* Root owns the folders of finished environments. It runs fixed programs of this package, without a network.
* ``INSTALLER`` owns the wheels, which it alone sees, and the environment that it makes. It runs uv, which unpacks
  wheels and runs no code of theirs.
* An install with source packages has a user of its own and its own cache, so it writes to its environment only.
* Foreign code is nobody, and sees the volume read-only. It can read the other environments; none contains a secret.
"""

from __future__ import annotations

import base64
import contextlib
import inspect
import io
import json
import re
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import docker.errors
from docker.models.containers import Container

from torchbisect.containers.docker.container_processes import NOBODY, held
from torchbisect.containers.docker.engine import LABEL, Engine, archive, engine_errors, remove, volume_full
from torchbisect.containers.docker.images import Image
from torchbisect.containers.docker.watch import under_watch
from torchbisect.containers.store import overlay
from torchbisect.containers.store.disk import is_disk_full_message
from torchbisect.core.errors import MachineError

VOLUME_NAME = "torchbisect-store"
#: The mount point; environments contain this path, so it is the same in every container.
ROOT = "/torchbisect"
VENVS = f"{ROOT}/venvs"
MAKING = f"{ROOT}/making"
WHEELS = f"{ROOT}/uv"
#: The user of installs from wheels.
INSTALLER = 65532
#: Capabilities of root where it gives files to other users; it has none elsewhere.
_OWNERSHIP = ("CHOWN", "DAC_OVERRIDE", "FOWNER")
FACTS_FILE = "torchbisect-facts.json"
_LISTED = re.compile(rf"^([0-9]{{1,15}}) {VENVS}/([^/\n]+)/{FACTS_FILE}$", re.MULTILINE)

_UNLINKED = f"""
import os, pathlib
for archive in pathlib.Path({WHEELS!r}, "archive-v0").glob("*"):
    names = [place.name.partition("-")[0] for place in archive.glob("*.dist-info")]
    files = (os.lstat(os.path.join(folder, name)) for folder, _, files in os.walk(archive) for name in files)
    if names and all(status.st_nlink == 1 for status in files):
        print(*names)
"""

#: Script that follows the text of the module ``overlay`` in a container.
_OVERLAY_FILES = """
import base64, json, sys
source, place, files, commit = sys.argv[1:]
with open(files) as listing:
    layer = {path: base64.b64decode(body) if body is not None else None for path, body in json.load(listing).items()}
os.unlink(files)
shutil.rmtree(place, ignore_errors=True)
link_tree(Path(source), Path(place))
overlay_files(Path(place), layer, commit)
"""


#: Script for root that prepares an empty folder for a user, and the folders around it.
_PREPARE = f"""
set -e; umask 022; mkdir -p {VENVS} {MAKING} {WHEELS}
if [ "$(stat -c %u {WHEELS})" != {INSTALLER} ]; then chown -R {INSTALLER}:{INSTALLER} {WHEELS}; fi
chmod 700 {WHEELS}  # uv lets everybody write to its lock
rm -rf "$1"; mkdir "$1"; chown "$2:$2" "$1"
"""

#: Script for root that compiles an environment's Python files to byte code as nobody, who may write to its folders only
#: meanwhile, and makes root the owner at the end. Files that are links of the wheels stay as they are.
_COMPILE = """
import os, signal, stat, subprocess, sys
place, seconds, nobody = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])


def owned(user):
    for folder, folders, files in os.walk(place):
        for name in [folder, *(os.path.join(folder, name) for name in (*folders, *files))]:
            status = os.lstat(name)
            if stat.S_ISDIR(status.st_mode) or (user == 0 and status.st_nlink == 1):
                os.chown(name, user, user, follow_symlinks=False)
                if not stat.S_ISLNK(status.st_mode):
                    os.chmod(name, stat.S_IMODE(status.st_mode) & 0o755)


def drop():
    os.setgroups([])
    os.setgid(nobody)
    os.setuid(nobody)
    os.umask(0o022)


owned(nobody)
command = [sys.executable, "-I", "-S", "-m", "compileall", "-q", "-j", "0", os.path.join(place, "lib")]
nothing = subprocess.DEVNULL
compiling = subprocess.Popen(
    command, preexec_fn=drop, start_new_session=True, cwd="/", stdin=nothing, stdout=nothing, stderr=nothing
)
try:
    compiling.wait(seconds)
except subprocess.TimeoutExpired:
    pass
try:
    os.killpg(compiling.pid, signal.SIGKILL)
except ProcessLookupError:
    pass
compiling.wait()
owned(0)
"""
_COMPILE_SECONDS = 900


@dataclass(frozen=True)
class VolumeEnvironment:
    """One environment in the volume: its key, and when it was last used, in seconds since the epoch."""

    key: str
    used: float


class Volume:
    """The volume, used through short-lived containers, since it may be on another machine."""

    def __init__(self, engine: Engine, image: Image, volume: str = VOLUME_NAME) -> None:
        """Make the volume if it isn't there. Raise ``MachineError`` or ``DiskFull`` if the engine fails."""
        self.engine = engine
        self.image = image
        self.name = volume
        self._container_for_copies: Container | None = None
        with engine_errors("making the volume"):
            engine.client.volumes.create(volume, labels={LABEL: "store"})

    def mount(self, *, writable: bool) -> dict[str, dict[str, str]]:
        """Return the volume as an argument of ``containers.create``."""
        return {self.name: {"bind": ROOT, "mode": "rw" if writable else "ro"}}

    def facts(self, key: str) -> str | None:
        """Return the facts file of a finished environment, or ``None`` if there is no environment of this key."""
        with engine_errors("reading from the volume"):
            try:
                chunks, _ = self._copy_container().get_archive(f"{VENVS}/{key}/{FACTS_FILE}")
            except docker.errors.NotFound:
                return None
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as packed:
                member = packed.extractfile(FACTS_FILE)
                return member.read().decode("utf-8", "replace") if member else None

    def write_facts(self, folder: str, facts: str) -> None:
        """Write the facts into an environment; the time of the file is when the environment was last used."""
        with engine_errors("writing to the volume"):
            self._copy_container().put_archive(folder, archive({FACTS_FILE: facts.encode()}))

    def environments(self) -> list[VolumeEnvironment]:
        """Return all finished environments, the one unused longest first."""
        listing = self.run_program(["sh", "-c", f"stat -c '%Y %n' {VENVS}/*/{FACTS_FILE} 2>/dev/null || true"])
        found = [VolumeEnvironment(key, float(moment)) for moment, key in _LISTED.findall(listing)]
        return sorted(found, key=lambda kept: kept.used)

    def prepare(self, folder: str, user: int) -> None:
        """Make an empty folder that only ``user`` may write to."""
        self.run_program(["sh", "-c", _PREPARE, "sh", folder, str(user)])

    def compile_bytecode(self, folder: str) -> None:
        """Compile a new environment to byte code, and make root its owner; none of its code is run.

        Not every package compiles, and a file that does not is left out.
        """
        command = ["python3", "-I", "-S", "-c", _COMPILE, folder, str(_COMPILE_SECONDS), NOBODY.partition(":")[0]]
        limits = {
            "mem_limit": 4 << 30,
            "pids_limit": 512,
            "read_only": True,
            "tmpfs": {"/tmp": "rw,size=64m"},
        }
        self.run_program(command, capabilities=(*_OWNERSHIP, "SETUID", "SETGID", "KILL"), **limits)

    def remove(self, path: str) -> None:
        """Remove a folder of the volume; it is moved away first, so that nobody sees half of it."""
        removed = f"{MAKING}/gone-{time.time_ns()}"
        script = (
            f'mkdir -p {MAKING}; if [ -e "$1" ]; then mv "$1" {removed} && rm -rf {removed}; fi; rm -rf {MAKING}/gone-*'
        )
        self.run_program(["sh", "-c", script, "sh", path])

    def overlay_files(self, source: str, place: str, layer: Mapping[str, bytes | None], commit: str) -> None:
        """Copy an environment by hard links, with other files in its packages; see the module ``overlay``."""
        contents = {path: None if body is None else base64.b64encode(body).decode() for path, body in layer.items()}
        files = f"{place}.json"
        with engine_errors("writing to the volume"):
            body = json.dumps(contents).encode()
            self._copy_container().put_archive(ROOT, archive({files[len(ROOT) + 1 :]: body}))
        self.run_program(["python3", "-c", inspect.getsource(overlay) + _OVERLAY_FILES, source, place, files, commit])

    def remove_unused_wheels(self) -> None:
        """Remove the packages among the wheels that no environment holds a link to."""
        names = self.run_program(["python3", "-c", _UNLINKED]).split()
        if names:
            self.run_program(["uv", "cache", "clean", "--cache-dir", WHEELS, *sorted(set(names))], user=INSTALLER)

    def run_program(self, command: list[str], **options: Any) -> str:
        """Run a program of the image without a network; return its output. ``options`` are those of ``create``.

        Raise ``DiskFull`` if there was no room, and ``MachineError`` if it fails otherwise.
        """
        with engine_errors(f"running {command[0]} on the volume"):
            container = self.create(command, **{"capabilities": _OWNERSHIP, "network_mode": "none", **options})
            with held(container):
                status = container.wait()["StatusCode"]
                output = container.logs(stdout=True, stderr=False).decode("utf-8", "replace")
                errors = container.logs(stdout=False, stderr=True).decode("utf-8", "replace")
        if status and is_disk_full_message(errors):
            raise volume_full()
        if status:
            raise MachineError(f"{command[0]} failed on the volume {self.name}: {' '.join(errors.split())[:300]}")
        return output

    def create(
        self, command: list[str], *, user: int = 0, capabilities: tuple[str, ...] = (), **options: Any
    ) -> Container:
        """Return a container for ``held``, not started, that may write to the volume as far as ``user`` may.

        It has no capability beside ``capabilities``, and these for root only.
        """
        return self.engine.create(
            self.image.identity,
            **under_watch(command),
            volumes=self.mount(writable=True),
            cap_drop=["ALL"],
            cap_add=[] if user else list(capabilities),
            security_opt=["no-new-privileges:true"],
            user=f"{user}:{user}",
            labels=self.engine.labels("helper"),
            **options,
        )

    def close(self) -> None:
        """Remove the container that was made for copies; the volume itself stays."""
        container, self._container_for_copies = self._container_for_copies, None
        if container is not None:
            with contextlib.suppress(MachineError):
                remove(container)

    def _copy_container(self) -> Container:
        """Return a container that is never started; files of its volume can still be copied in and out."""
        if self._container_for_copies is None:
            self._container_for_copies = self.create(["true"], network_mode="none")
        return self._container_for_copies
