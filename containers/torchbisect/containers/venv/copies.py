"""Temporary copies of virtual environments, with other files in them or with a changed package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torchbisect.containers.environment import Facts, Venv
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import disk_errors
from torchbisect.containers.store.overlay import link_tree, overlay_files, site_packages
from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import MachineError
from torchbisect.core.retry import Notify, silent


@contextmanager
def overlaid_environment(
    cache: Cache, base: Venv, layer: Mapping[str, bytes | None], commit: str, build: Build | None = None
) -> Iterator[Venv]:
    """Make a copy of an environment with other files in its site-packages, for as long as the context lasts.

    ``base`` stays as it is; ``layer`` and ``commit`` are those of ``overlay_files``. The copy represents ``build``, by
    default that commit with the version of ``base``. Raise ``DiskFull`` if there is no room, and ``MachineError`` if
    ``base`` is no virtual environment.
    """
    site_packages_of(base)
    with copied_environment(cache, base, copy_name(commit, str(base.python)), f"the Python of {commit[:10]}") as python:
        with disk_errors(python):
            overlay_files(python.parents[1], layer, commit)
        stands_for, facts = overlay_identity(base.build, base.facts, commit, build)
        yield replace(base, build=stands_for, facts=facts, python=python)


@contextmanager
def copied_environment(cache: Cache, base: Venv, name: str, what: str, notify: Notify = silent) -> Iterator[Path]:
    """Make a copy of an environment out of hard links, and yield its Python, for as long as the context lasts.

    The copy lies among the cache's unfinished environments, under a lock. A killed run's copy is swept away from there,
    and a living run's is not. Two copies of one name are made one after the other; ``what`` names the copy in the
    message of that wait. Raise ``DiskFull`` if there is no room.
    """
    lock, folder = cache.install_lock(name), cache.unfinished / name
    source = base.python.parents[1]
    with lock.held(f"another run uses the copy with {what}: waiting for it", notify):
        try:
            remove_tree(folder)
            with disk_errors(folder.parent):
                link_tree(source, folder)
            yield folder / base.python.relative_to(source)
        finally:
            remove_tree(folder)


def copy_name(commit: str, base: str) -> str:
    """Return the name of the copy with a commit's Python, the same in each run."""
    return f"overlay-{hashlib.sha256(f'{commit} {base}'.encode()).hexdigest()[:12]}"


def overlay_identity(base: Build, facts: Facts, commit: str, build: Build | None = None) -> tuple[Build, Facts]:
    """Return the build that a copy with a commit's Python represents, and the facts it will report."""
    stands_for = build or Build(base.version, Channel.COMMIT, date=base.date, commit=commit)
    return stands_for, replace(facts, torch=stands_for.version if build else facts.torch, git_version=commit)


def site_packages_of(environment: Venv) -> Path:
    """Return an environment's site-packages. Raise ``MachineError`` if it is no virtual environment."""
    try:
        return site_packages(environment.python.parents[1])
    except FileNotFoundError as error:
        raise MachineError(f"{error}, and nothing can be laid over it: name a build to install with --torch") from error
