"""Images: torchbisect's own, built on first use from the Dockerfiles beside this module, or one the user names."""

from __future__ import annotations

import hashlib
import importlib.resources
import io
from dataclasses import dataclass
from pathlib import Path

import docker.errors

from torchbisect.containers.docker.container_processes import held
from torchbisect.containers.docker.engine import LABEL, Engine, archive, engine_errors, install_network
from torchbisect.containers.docker.watch import under_watch
from torchbisect.containers.python.interpreter import INTERPRETER_QUERY, Interpreter
from torchbisect.containers.venv.installer import find_uv
from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.retry import Notify, silent

#: Script that prints the programs an image lacks; ``INTERPRETER_QUERY`` follows it.
IMAGE_QUERY = r"""
import os, shutil, sysconfig
missing = []
if not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
    missing.append("a C++ compiler (g++)")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    missing.append("Python's headers (python3-dev)")
if not shutil.which("uv"):
    missing.append("uv")
print("missing:" + "; ".join(missing))
"""


@dataclass(frozen=True)
class ImageOptions:
    """Options that choose an image.

    Attributes:
        name: the image that the user named, or ``None`` for torchbisect's own.
        kind: which of torchbisect's own images: ``cpu`` or ``cuda``.
        base: the image that torchbisect's own is built on, in place of the Dockerfile's default.
    """

    name: str | None = None
    kind: str = "cpu"
    base: str | None = None


@dataclass(frozen=True)
class Image:
    """An image in which environments can be made and run; the path of ``interpreter`` is the one inside."""

    name: str
    identity: str
    interpreter: Interpreter


def find_image(engine: Engine, options: ImageOptions | None = None, *, notify: Notify = silent) -> Image:
    """Return the image that was named, or torchbisect's own, which is built if it isn't there.

    Raises:
        InputError: if a named image isn't there, or lacks something; the message says what.
        MachineError: if torchbisect's own image can't be built.
    """
    options = options or ImageOptions()
    name = options.name
    if name is None:
        return check_image(engine, build_image(engine, options.kind, base=options.base, notify=notify))
    with engine_errors(f"looking for the image {name}"):
        try:
            engine.client.images.get(name)
        except docker.errors.ImageNotFound:
            notify(f"fetching the image {name}")
            try:
                engine.client.images.pull(name)
            except (docker.errors.NotFound, docker.errors.APIError) as error:
                message = " ".join(str(error.explanation or error).split())[:200]
                raise InputError(
                    f"there is no image {name} and none can be fetched ({message}): correct --image"
                ) from error
    return check_image(engine, name)


def build_image(engine: Engine, kind: str, *, base: str | None = None, notify: Notify = silent) -> str:
    """Build one of torchbisect's own images unless it is there, and return its tag.

    Raise ``MachineError`` if its base can't be fetched, or the engine's architecture is not uv's.
    """
    folder = importlib.resources.files("torchbisect.containers.docker")
    dockerfile = folder.joinpath(f"dockerfiles/{kind}.Dockerfile").read_bytes()
    uv = Path(find_uv()).read_bytes()
    digest = hashlib.sha256(b"\n".join([dockerfile, hashlib.sha256(uv).digest(), (base or "").encode()])).hexdigest()
    tag = f"torchbisect-{kind}:{digest[:12]}"
    with engine_errors(f"building the image {tag}"):
        try:
            engine.client.images.get(tag)
            return tag
        except docker.errors.ImageNotFound:
            pass
        notify(f"building the image {tag}, once for this engine")
        try:
            engine.client.images.build(
                fileobj=io.BytesIO(archive({"Dockerfile": dockerfile, "uv": uv}, 0o755)),
                custom_context=True,
                tag=tag,
                buildargs={"BASE": base} if base else {},
                labels={LABEL: "image"},
                network_mode=install_network(),
                rm=True,
                forcerm=True,
            )
        except docker.errors.BuildError as error:
            message = " ".join(str(error).split())[:300]
            raise MachineError(
                f"the image {tag} could not be built ({message}): check that the engine can fetch its base, or name an "
                "image that has Python with its headers, a C++ compiler and uv with --image"
            ) from error
    return tag


def check_image(engine: Engine, name: str) -> Image:
    """Inspect an image. Raise ``InputError`` if it lacks something that environments need."""
    with engine_errors(f"looking into the image {name}"):
        identity = str(engine.client.images.get(name).id)
        container = engine.create(
            name,
            **under_watch(["python3", "-c", IMAGE_QUERY + INTERPRETER_QUERY]),
            network_mode="none",
            cap_drop=["ALL"],
            labels=engine.labels("look"),
        )
        try:
            with held(container):
                status = container.wait(timeout=120)["StatusCode"]
                lines = container.logs(stdout=True, stderr=False).decode("utf-8", "replace").splitlines()
                message = container.logs(stdout=False, stderr=True).decode("utf-8", "replace").strip().splitlines()
        except docker.errors.APIError as error:
            reason = " ".join(str(error.explanation or error).split())[:200]
            raise InputError(
                f"the image {name} has no python3 that starts ({reason}): name another with --image"
            ) from error
    if status or len(lines) < 2:
        raise InputError(f"the image {name} has no python3 that works ({message[-1] if message else f'exit {status}'})")
    missing = next((line.partition(":")[2] for line in lines if line.startswith("missing:")), "")
    if missing:
        raise InputError(f"the image {name} lacks {missing}: add it, or leave --image out to have one built")
    return Image(name, identity, Interpreter.from_answer(Path("python3"), lines[-1]))
