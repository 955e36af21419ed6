"""Volume for environments and wheels: only one, so that files of both can be hard links of each other.

The installer mounts it writable and runs no foreign code. Foreign code sees it read-only. Docker can mount a part of
a volume only since version 26, so that code also sees the other environments; none contains a secret.
"""

from __future__ import annotations

import base64
import contextlib
import inspect
import io
import json
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import docker.errors
from docker.models.containers import Container

from torchbisect.containers.docker.engine import LABEL, Engine, archive, engine_errors, remove, volume_full
from torchbisect.containers.docker.images import Image
from torchbisect.containers.store import overlay
from torchbisect.containers.store.disk import is_disk_full_message
from torchbisect.core.errors import MachineError

VOLUME_NAME = "torchbisect-store"
#: The mount point; environments contain this path, so it is the same in every container.
ROOT = "/torchbisect"
VENVS = f"{ROOT}/venvs"
MAKING = f"{ROOT}/making"
WHEELS = f"{ROOT}/uv"
FACTS_FILE = "torchbisect-facts.json"

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
                return member.read().decode("utf-8") if member else None

    def write_facts(self, folder: str, facts: str) -> None:
        """Write the facts into an environment; the time of the file is when the environment was last used."""
        with engine_errors("writing to the volume"):
            self._copy_container().put_archive(folder, archive({FACTS_FILE: facts.encode()}))

    def environments(self) -> list[VolumeEnvironment]:
        """Return all finished environments, the one unused longest first."""
        listing = self.run_program(["sh", "-c", f"stat -c '%Y %n' {VENVS}/*/{FACTS_FILE} 2>/dev/null || true"])
        pairs = [line.split(" ", 1) for line in listing.splitlines() if " " in line]
        found = [VolumeEnvironment(path.split("/")[-2], float(moment)) for moment, path in pairs]
        return sorted(found, key=lambda kept: kept.used)

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
            self.run_program(["uv", "cache", "clean", "--cache-dir", WHEELS, *sorted(set(names))])

    def run_program(self, command: list[str]) -> str:
        """Run a program of the image with write access to the volume only; return its output.

        Raise ``DiskFull`` if there was no room, and ``MachineError`` if it fails otherwise.
        """
        with engine_errors(f"running {command[0]} on the volume"):
            container = self.create(command, network_mode="none")
            try:
                container.start()
                status = container.wait()["StatusCode"]
                output = container.logs(stdout=True, stderr=False).decode("utf-8", "replace")
                errors = container.logs(stdout=False, stderr=True).decode("utf-8", "replace")
            finally:
                remove(container)
        if status and is_disk_full_message(errors):
            raise volume_full()
        if status:
            raise MachineError(f"{command[0]} failed on the volume {self.name}: {' '.join(errors.split())[:300]}")
        return output

    def create(self, command: list[str], **options: Any) -> Container:
        """Return a container, not started, that may write to the volume and has no capability."""
        return self.engine.client.containers.create(
            self.image.identity,
            command=command[1:],
            entrypoint=[command[0]],
            volumes=self.mount(writable=True),
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true"],
            user="0:0",
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
