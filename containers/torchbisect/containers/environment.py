"""An environment: a build installed somewhere it can run. A venv here, a container elsewhere, one shape for both."""

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
    """What was read back from an environment after the install: what is there is what gets reported.

    Attributes:
        torch: ``torch.__version__``.
        git_version: ``torch.version.git_version``; of a nightly the commit on the nightly branch, not on main.
        python: the Python's version, ``3.11.7``.
        platform: the machine and system, as ``platform.platform()`` says.
        cuda: the CUDA that torch was built for, or ``None`` for a CPU build.
        triton: the version of triton beside it, or ``None``.
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
        status: the exit status; the negative number of the signal if one ended it; ``None`` if it was timed out.
        output: standard output, cut to the cap.
        errors: standard error, cut to the cap.
        seconds: wall time.
    """

    status: int | None
    output: str
    errors: str
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether it was ended because its time was up."""
        return self.status is None


class Process(Protocol):
    """A running command with its three streams held; used from one thread at a time."""

    def send(self, data: bytes) -> None:
        """Write to its standard input. Raises ``BrokenPipeError`` if it has gone."""

    def read_line(self, timeout: float) -> bytes | None:
        """The next line of its standard output; ``b""`` at its end, ``None`` when ``timeout`` seconds pass first."""

    def errors(self) -> str:
        """The last part of what it wrote to standard error."""

    def kill(self) -> int | None:
        """End it and all it started; returns the exit status where there was one. May be called twice."""


class Environment(Protocol):
    """A build installed somewhere it can run."""

    @property
    def build(self) -> Build:
        """The build that was asked for."""

    @property
    def facts(self) -> Facts:
        """What was read back after the install."""

    @property
    def local(self) -> bool:
        """Whether what runs here has the files of this machine before it."""

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> Process:
        """Start this environment's Python with these arguments, in its own process group and a clean environment.

        Args:
            arguments: what follows ``python``.
            extra: variables beside the few that every process gets.
        """

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        directory: str | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run this environment's Python to its end, or to the end of ``timeout`` seconds, then kill the whole group."""


class Environments(Protocol):
    """Makes environments and keeps them: in virtual environments on this machine, or in containers."""

    @property
    def interpreter(self) -> Interpreter:
        """The Python that environments are made from: which wheels can be had is a question to it."""

    def environment(self, build: Build) -> Environment:
        """The environment of a build, made if it isn't there; leased until ``release`` or ``close``.

        Raises:
            InstallFailed: if the build can't be had here, with the reason; a search skips it.
            InputError: if what the user gave is to blame, such as a package that doesn't exist.
            MachineError: or one of its kin, if this machine fails: no build is to blame for it.
        """

    def prefetch(self, build: Build, cancel: threading.Event) -> None:
        """Make an environment that may be asked for soon, in the calling thread; what fails is not told here."""

    def with_overlay(
        self, build: Build, layer: Mapping[str, bytes | None], commit: str
    ) -> AbstractContextManager[Environment]:
        """A copy of a build's environment with other files in its site-packages, for as long as the context lasts.

        Args:
            build: lends its binaries; nothing in its own environment is changed.
            layer: the contents of files by their path in site-packages; ``None`` for files to take away.
            commit: whose Python it is; it is what ``git_version`` says there.

        Raises:
            InstallFailed, InputError, MachineError: as ``environment`` does.
        """

    @property
    def replaces_packages(self) -> bool:
        """True if ``with_package`` can be used."""

    def with_package(self, build: Build, requirement: str) -> AbstractContextManager[Environment]:
        """Return a copy of a build's environment with one package in another version, as a context manager.

        Args:
            build: the build to copy; its own environment stays as it is.
            requirement: the package and its version, such as ``triton==3.5.0``.

        Raises:
            InstallFailed: if the index has no such package, or torch can't be imported beside it.
            InputError: if packages can't be replaced here (see ``replaces_packages``), or as ``environment`` does.
            MachineError: as ``environment`` does.
        """

    def host_venv(self, build: Build) -> Venv:
        """Lease the environment of a build as a virtual environment on this machine.

        Raises:
            InputError: if these environments lie in containers.
            InstallFailed, MachineError: as ``environment`` does.
        """

    def has(self, build: Build) -> bool:
        """Whether the environment is there already, so that asking for it costs nothing."""

    def release(self, build: Build) -> None:
        """Give back one lease; the environment stays for the next run unless its room is needed."""

    def close(self) -> None:
        """Give everything back."""
