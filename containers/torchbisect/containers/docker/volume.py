"""The volume that environments and wheels are kept in: one, so that files of both can be hard links of each other.

Whoever installs has it with write access and runs no foreign code; whoever runs foreign code has it read-only. Docker
can mount a part of a volume only since version 26, so that code sees the other environments too; none holds a secret.
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

from torchbisect.containers.docker.engine import LABEL, Engine, engine_errors, remove, volume_full
from torchbisect.containers.docker.images import Image
from torchbisect.containers.store import overlay
from torchbisect.containers.store.disk import is_disk_full_message
from torchbisect.core.errors import MachineError

VOLUME_NAME = "torchbisect-store"
#: Where it is mounted; environments hold this path, so it is the same in every container.
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

#: Follows the text of ``overlay`` in a container.
_OVERLAY_FILES = """
import base64, json, sys
source, place, files, commit = sys.argv[1:]
with open(files) as told:
    layer = {path: base64.b64decode(body) if body is not None else None for path, body in json.load(told).items()}
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
    """The volume, seen through short-lived containers: it may be on another machine."""

    def __init__(self, engine: Engine, image: Image, volume: str = VOLUME_NAME) -> None:
        """Make the volume if it isn't there. Raises ``MachineError`` or ``DiskFull`` if the engine fails at it."""
        self.engine = engine
        self.image = image
        self.name = volume
        self._keeper: Container | None = None
        with engine_errors("making the volume"):
            engine.client.volumes.create(volume, labels={LABEL: "store"})

    def mount(self, *, writable: bool) -> dict[str, dict[str, str]]:
        """The volume as ``containers.create`` is told of it."""
        return {self.name: {"bind": ROOT, "mode": "rw" if writable else "ro"}}

    def facts(self, key: str) -> str | None:
        """What was written down of a finished environment, or ``None`` if there is none of this key."""
        with engine_errors("reading from the volume"):
            try:
                chunks, _ = self._holder().get_archive(f"{VENVS}/{key}/{FACTS_FILE}")
            except docker.errors.NotFound:
                return None
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
                member = archive.extractfile(FACTS_FILE)
                return member.read().decode("utf-8") if member else None

    def write_facts(self, folder: str, facts: str) -> None:
        """Write the facts into an environment; their time is when it was last used."""
        with engine_errors("writing to the volume"):
            self._holder().put_archive(folder, archive({FACTS_FILE: facts.encode()}))

    def environments(self) -> list[VolumeEnvironment]:
        """All finished environments, the longest unused first."""
        told = self.run_program(["sh", "-c", f"stat -c '%Y %n' {VENVS}/*/{FACTS_FILE} 2>/dev/null || true"])
        pairs = [line.split(" ", 1) for line in told.splitlines() if " " in line]
        found = [VolumeEnvironment(path.split("/")[-2], float(moment)) for moment, path in pairs]
        return sorted(found, key=lambda kept: kept.used)

    def remove(self, path: str) -> None:
        """Remove a folder of the volume: first from its place, so that nobody sees half of it, then for good."""
        gone = f"{MAKING}/gone-{time.time_ns()}"
        script = f'mkdir -p {MAKING}; if [ -e "$1" ]; then mv "$1" {gone} && rm -rf {gone}; fi; rm -rf {MAKING}/gone-*'
        self.run_program(["sh", "-c", script, "sh", path])

    def overlay_files(self, source: str, place: str, layer: Mapping[str, bytes | None], commit: str) -> None:
        """Make a copy of an environment that costs no room, with other files in its packages; see ``overlay``."""
        told = {path: None if body is None else base64.b64encode(body).decode() for path, body in layer.items()}
        files = f"{place}.json"
        with engine_errors("writing to the volume"):
            body = json.dumps(told).encode()
            self._holder().put_archive(ROOT, archive({files[len(ROOT) + 1 :]: body}))
        self.run_program(["python3", "-c", inspect.getsource(overlay) + _OVERLAY_FILES, source, place, files, commit])

    def remove_unused_wheels(self) -> None:
        """Take packages out of the wheels of which no environment holds a link any more."""
        names = self.run_program(["python3", "-c", _UNLINKED]).split()
        if names:
            self.run_program(["uv", "cache", "clean", "--cache-dir", WHEELS, *sorted(set(names))])

    def run_program(self, command: list[str]) -> str:
        """Run a program of the image's with write access to the volume and nothing else; returns what it printed.

        Raises:
            DiskFull: if it found no room.
            MachineError: if it fails.
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
        """A container, not started, that may write to the volume and has no capability."""
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
        """Remove what was made to look into the volume; the volume itself stays."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            with contextlib.suppress(MachineError):
                remove(keeper)

    def _holder(self) -> Container:
        """A container that is never started: files of its volume can be copied in and out all the same."""
        if self._keeper is None:
            self._keeper = self.create(["true"], network_mode="none")
        return self._keeper


def archive(files: dict[str, bytes]) -> bytes:
    """A tar of these files, as the engine takes them; everybody may read them."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as packed:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(body), 0o644, int(time.time())
            packed.addfile(entry, io.BytesIO(body))
    return whole.getvalue()
