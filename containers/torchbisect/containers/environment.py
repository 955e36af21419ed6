"""Environments: builds installed where they can run, on this machine or in a container."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build

if TYPE_CHECKING:
    from torchbisect.containers.venv.venv import Venv


@dataclass(frozen=True)
class Facts:
    """Facts read back from an environment after the install; reports give these, not what was asked for.

    Attributes:
        torch: ``torch.__version__``.
        git_version: ``torch.version.git_version``; for a nightly it is the commit on the nightly branch, not on main.
        python: the version of Python, such as ``3.11.7``.
        platform: the machine and system, from ``platform.platform()``.
        cuda: the CUDA that torch was built for, or ``None`` for a CPU build.
        triton: the version of the installed triton, or ``None``.
    """

    torch: str
    git_version: str | None
    python: str
    platform: str
    cuda: str | None = None
    triton: str | None = None


@dataclass(frozen=True)
class Completed:
    """A command that has ended.

    Attributes:
        status: the exit status; the negative signal number if a signal ended it; ``None`` if it timed out.
        output: standard output, cut to the limit.
        errors: standard error, cut to the limit.
        seconds: wall time.
    """

    status: int | None
    output: str
    errors: str
    seconds: float

    @property
    def timed_out(self) -> bool:
        """True if the command was ended because its time was up."""
        return self.status is None


class Process(Protocol):
    """A running command with its three streams held; used from one thread at a time."""

    def send(self, data: bytes) -> None:
        """Write to its standard input. Raise ``BrokenPipeError`` if the process has ended."""

    def read_line(self, timeout: float) -> bytes | None:
        """Return the next line of its standard output, ``b""`` at the end, ``None`` after ``timeout`` seconds."""

    def errors(self) -> str:
        """Return the last part of its standard error."""

    def kill(self) -> int | None:
        """End it and everything it started; return the exit status if there was one. May be called twice."""


class Environment(Protocol):
    """A build installed where it can run."""

    @property
    def build(self) -> Build:
        """The build that was asked for."""

    @property
    def facts(self) -> Facts:
        """The facts read back after the install."""

    @property
    def local(self) -> bool:
        """True if processes here see the files of this machine."""

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> Process:
        """Start its Python in its own process group, with a few clean variables and ``extra``."""

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        directory: str | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run this environment's Python until it ends or ``timeout`` seconds pass, then kill the whole group."""


class Environments(Protocol):
    """Makes environments and keeps them: in virtual environments on this machine, or in containers."""

    @property
    def interpreter(self) -> Interpreter:
        """The Python that environments are made from; it decides which wheels fit."""

    def environment(self, build: Build) -> Environment:
        """Return the environment of a build, made if it isn't there; leased until ``release`` or ``close``.

        Raises:
            InstallFailed: if the build can't be installed here; a search skips it.
            InputError: if the user's input is at fault, such as a package that doesn't exist.
            MachineError: if this machine fails; no build is at fault.
        """

    def prefetch(self, build: Build, cancel: threading.Event) -> None:
        """Make an environment that may be needed soon, in the calling thread; failures are not reported."""

    def with_overlay(
        self, build: Build, layer: Mapping[str, bytes | None], commit: str
    ) -> AbstractContextManager[Environment]:
        """Return a copy of a build's environment with other files in its site-packages, as a context manager.

        Args:
            build: the build that provides the binaries; its own environment stays as it is.
            layer: new contents of files by their path in site-packages; ``None`` removes a file.
            commit: the commit that the Python files are from; the copy reports it as ``git_version``.

        Raise the errors of ``environment``.
        """

    @property
    def replaces_packages(self) -> bool:
        """True if ``with_package`` works here."""

    def with_package(self, build: Build, requirement: str) -> AbstractContextManager[Environment]:
        """Return a copy of a build's environment with one package in another version, as a context manager.

        Args:
            build: the build to copy; its own environment stays as it is.
            requirement: the package and its version, such as ``triton==3.5.0``.

        Raises:
            InstallFailed: if the index has no such package, or torch can't be imported beside it.
            InputError: if packages can't be replaced here (see ``replaces_packages``).
        """

    def host_venv(self, build: Build) -> Venv:
        """Lease the environment of a build as a virtual environment on this machine.

        Raise ``InputError`` if these environments lie in containers, and the errors of ``environment``.
        """

    def has(self, build: Build) -> bool:
        """Return true if the environment is installed already."""

    def release(self, build: Build) -> None:
        """Give back one lease; the environment stays for the next run unless its room is needed."""

    def close(self) -> None:
        """Give back all leases and remove what only this run needs."""
