"""Copies of virtual environments that live as long as they are asked: with other files laid over them, or changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torchbisect.containers.environment import Facts
from torchbisect.containers.store.cache import Cache, remove_tree
from torchbisect.containers.store.disk import disk_errors
from torchbisect.containers.store.overlay import link_tree, overlay_files, site_packages
from torchbisect.containers.venv.venv import Venv
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import MachineError
from torchbisect.core.retry import Notify, silent


@contextmanager
def overlaid_environment(
    cache: Cache, base: Venv, layer: Mapping[str, bytes | None], commit: str, build: Build | None = None
) -> Iterator[Venv]:
    """A copy of an environment with these files in its site-packages, for as long as the context lasts.

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
    site_packages_of(base)
    with copied_environment(cache, base, copy_name(commit, str(base.python)), f"the Python of {commit[:10]}") as python:
        with disk_errors(python):
            overlay_files(python.parents[1], layer, commit)
        stands_for, facts = overlay_identity(base.build, base.facts, commit, build)
        yield replace(base, build=stands_for, facts=facts, python=python)


@contextmanager
def copied_environment(cache: Cache, base: Venv, name: str, what: str, notify: Notify = silent) -> Iterator[Path]:
    """The Python of a copy of an environment, in which every file is still the same file, for as long as it is needed.

    It lies where the cache keeps what is unfinished, under a lock, so that what a killed run leaves is swept away and
    what a living one uses is not.

    Args:
        name: of its folder; two copies of one name are made one after the other.
        what: what it is for, in words.

    Raises:
        DiskFull: if there is no room.
    """
    lock, place = cache.install_lock(name), cache.unfinished / name
    lock.acquire(waiting=f"waiting for another run that asks {what}", notify=notify)
    source = base.python.parents[1]
    try:
        remove_tree(place)
        with disk_errors(place.parent):
            link_tree(source, place)
        yield place / base.python.relative_to(source)
    finally:
        remove_tree(place)
        lock.release()


def copy_name(commit: str, base: str) -> str:
    """What the copy with a commit's Python is called, the same in each run."""
    return f"overlay-{hashlib.sha256(f'{commit} {base}'.encode()).hexdigest()[:12]}"


def overlay_identity(base: Build, facts: Facts, commit: str, build: Build | None = None) -> tuple[Build, Facts]:
    """What a copy with a commit's Python is called, and what will be read back from it."""
    stands_for = build or Build(base.version, Channel.COMMIT, date=base.date, commit=commit)
    return stands_for, replace(facts, torch=stands_for.version if build else facts.torch, git_version=commit)


def site_packages_of(environment: Venv) -> Path:
    """Where an environment's packages lie. Raises ``MachineError`` if it is no virtual environment."""
    try:
        return site_packages(environment.python.parents[1])
    except FileNotFoundError as error:
        raise MachineError(f"{error}: files are laid over one that torchbisect made") from error
