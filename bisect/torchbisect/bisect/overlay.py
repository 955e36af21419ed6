"""Lays files over a hard-linked copy of an installation: a torch with other Python, in half a second and a few MB."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torchbisect.containers.builds import Build, Channel
from torchbisect.containers.cache import Cache, remove_tree
from torchbisect.containers.disk import disk_errors
from torchbisect.containers.errors import MachineError
from torchbisect.containers.links import link_tree
from torchbisect.containers.venvs import Venv

_GIT_VERSION = re.compile(r"^git_version = .*$", re.MULTILINE)


@contextmanager
def overlaid(
    cache: Cache, base: Venv, layer: Mapping[str, bytes | None], commit: str, build: Build | None = None
) -> Iterator[Venv]:
    """A copy of an environment with these files in its site-packages, for as long as the context lasts.

    It lies where the cache keeps what is unfinished, under a lock, so that what a killed run leaves is swept away and
    what a living one uses is not.

    Args:
        cache: the cache that ``base`` lies in.
        base: the environment that lends its binaries; nothing in it is changed.
        layer: the contents of files by their path in site-packages; ``None`` for files to take away.
        commit: whose Python it is; it is written into ``torch/version.py``, so that what is read back is true.
        build: what the copy stands for; by default that commit with the version of ``base``.

    Raises:
        DiskFull: if there is no room.
        MachineError: if the environment is not a virtual one that can be copied.
    """
    digest = hashlib.sha256(f"{commit} {base.python}".encode()).hexdigest()[:12]
    name = f"overlay-{digest}"
    lock = cache.maker(name)
    lock.acquire(waiting=f"waiting for another run that asks the Python of {commit[:10]}")
    place = cache.making / name
    try:
        remove_tree(place)
        yield _lay_over(base, layer, commit, place, build)
    finally:
        remove_tree(place)
        lock.release()


def _lay_over(base: Venv, layer: Mapping[str, bytes | None], commit: str, place: Path, build: Build | None) -> Venv:
    source = base.python.parent.parent
    site = site_packages(base)
    with disk_errors(place.parent):
        link_tree(source, place)
        copy = place / site.relative_to(source)
        for path, contents in layer.items():
            _put(copy / path, contents)
        version = copy / "torch" / "version.py"
        told = _GIT_VERSION.sub(f"git_version = {commit!r}", version.read_text(encoding="utf-8"))
        _put(version, told.encode())
    stands_for = build or Build(base.build.version, Channel.COMMIT, date=base.build.date, commit=commit)
    torch = stands_for.version if build else base.facts.torch
    python = place / base.python.relative_to(source)
    return replace(base, build=stands_for, facts=replace(base.facts, torch=torch, git_version=commit), python=python)


def site_packages(environment: Venv) -> Path:
    """Where an environment's packages lie. Raises ``MachineError`` if it is no virtual environment."""
    place = environment.python.parent.parent
    found = sorted(place.glob("lib/python3*/site-packages"))
    if not (place / "pyvenv.cfg").exists() or not found:
        raise MachineError(f"{place} is no virtual environment: files are laid over one that torchbisect made")
    return found[0]


def _put(path: Path, contents: bytes | None) -> None:
    """Give a file new contents or take it away, its byte code with it; never written through the link it shares."""
    path.unlink(missing_ok=True)
    if path.suffix == ".py":
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
    if contents is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
