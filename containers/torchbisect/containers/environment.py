"""Environments: builds installed where they can run, and the facts that are read back from them."""

from __future__ import annotations

import dataclasses
import json
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from packaging.version import Version

from torchbisect.containers.process.processes import HostProcess
from torchbisect.containers.process.run_command import Completed, clean_environment, run_command
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.python.variants import GPU_QUERY, gpu_failure
from torchbisect.containers.store.disk import disk_errors
from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.build import Build, Channel
from torchbisect.core.decode import DecodeError, JsonLimits, decode, read_object
from torchbisect.core.errors import InputError, InstallFailed
from torchbisect.core.regular_file import read_regular_file


@dataclass(frozen=True)
class Facts:
    """Facts read back from an environment after the install; reports give these, not what was asked for.

    Attributes:
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


class Process(Protocol):
    """A running command with its three streams held; used from one thread at a time."""

    def send(self, data: bytes) -> None:
        """Write to its standard input. Raise ``BrokenPipeError`` if the process has ended."""

    def read_line(self, timeout: float) -> bytes | None:
        """Return the next line of its standard output, ``b""`` at the end, ``None`` after ``timeout`` seconds.

        Raise ``LineTooLong`` for a line of more than ``LINE_LIMIT`` bytes.
        """

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

    @property
    def compiler_cache(self) -> str | None:
        """The folder where processes keep what they find out about the build and the C++ compiler; or ``None``."""

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> Process:
        """Start its Python in its own process group, with a few clean variables and ``extra``."""

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        directory: str | None = None,
        extra: Mapping[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> Completed:
        """Run this environment's Python until it ends or ``timeout`` seconds pass, then kill the whole group.

        ``cancel`` ends it early, with ``Cancelled``.
        """


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

        ``layer`` has new contents of files by their path in site-packages; ``None`` removes a file. The copy reports
        ``commit``, which the Python files are from, as its ``git_version``. Raise the errors of ``environment``.
        """

    @property
    def replaces_packages(self) -> bool:
        """True if ``with_package`` works here."""

    def with_package(self, build: Build, requirement: str) -> AbstractContextManager[Environment]:
        """Return a copy of a build's environment with one package in another version, as a context manager.

        ``requirement`` is the package and its version, such as ``triton==3.5.0``. Raise ``InstallFailed`` if there is
        no such package or torch can't be imported beside it, ``InputError`` if packages can't be replaced here.
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


#: Seconds for an import of torch; a cold one from a slow disk takes tens of them.
IMPORT_TIMEOUT = 300.0

_MARK = "torchbisect-facts:"
_FACTS_LIMITS = JsonLimits(size=1 << 16)
_LONGEST_FACT = 1000

#: Script for Python 3.8 and torch 2.0 up that prints an environment's facts, after the import of torch that its one
#: argument asks for. Otherwise torch is found and not imported: torch/version.py has the facts, and imports nothing of
#: torch's. Torch would take half a second to end.
FACTS_QUERY = r"""
import gc, importlib.util, json, os, platform, runpy, sys
from importlib import metadata
gc.disable()  # saves a fifth of the time of importing torch
def version_of_files():
    found = importlib.util.find_spec("torch")
    for place in (found and found.submodule_search_locations) or ():
        path = os.path.join(place, "version.py")
        if os.path.isfile(path):
            return runpy.run_path(path)
    return {}
def version_of_import():
    import torch
    return {**vars(getattr(torch, "version", None) or object), "__version__": torch.__version__}
version = {} if sys.argv[1:] == ["import"] else version_of_files()
if "__version__" not in version:
    version = version_of_import()
triton = None
for name in ("triton", "pytorch-triton"):
    try:
        triton = metadata.version(name)
        break
    except metadata.PackageNotFoundError:
        pass
print("torchbisect-facts:" + json.dumps({
    "torch": str(version["__version__"]),
    "git_version": version.get("git_version"),
    "python": platform.python_version(),
    "platform": platform.platform(),
    "cuda": version.get("cuda"),
    "triton": triton,
}), flush=True)
os._exit(0)
"""


def read_facts(run: Callable[..., Completed], build: Build, *, imported: bool = True) -> Facts:
    """Return the facts of an environment, asked by its method ``run``.

    Args:
        imported: import torch as a run would. Without it a torch that can't be imported is met by the first run, and
            a second is saved.

    Raise ``InstallFailed``: ``import-failed`` if torch can't be imported, ``other-version`` if it is another version.
    """
    done = run(["-c", FACTS_QUERY, *(["import"] if imported else [])], timeout=IMPORT_TIMEOUT)
    answers = [line for line in done.output.splitlines() if line.startswith(_MARK)]
    if done.status != 0 or not answers:
        raise InstallFailed("import-failed", f"torch {build} was installed but can't be imported ({_why(done)})")
    try:
        facts = parse_facts(answers[-1][len(_MARK) :])
    except DecodeError as error:
        raise InstallFailed("import-failed", f"torch {build} was imported and gave no facts: {error}") from error
    # The version that a commit's torch reports is not known before it is built.
    if build.channel is not Channel.COMMIT and not same_version(build.version, facts.torch):
        raise InstallFailed("other-version", f"torch {build.version} was asked for and {facts.torch} came")
    return facts


def parse_facts(text: str) -> Facts:
    """Parse facts from JSON; unknown entries are ignored, missing ones are ``None``. Raise ``DecodeError``."""
    facts = decode(Facts, {"git_version": None, **read_object(text, _FACTS_LIMITS)}, "facts")
    for name, value in dataclasses.asdict(facts).items():
        if value is not None and (len(value) > _LONGEST_FACT or not value.isprintable()):
            raise DecodeError(f"facts.{name} should be a line of at most {_LONGEST_FACT} characters")
    return facts


def load_facts(path: Path) -> Facts | None:
    """Read facts from a file, or return ``None`` if they can't be read."""
    try:
        return parse_facts(read_regular_file(path, _FACTS_LIMITS.size).decode("utf-8"))
    except (OSError, ValueError, InputError):
        return None


def dump_facts(facts: Facts) -> str:
    """Return facts as JSON."""
    return json.dumps(dataclasses.asdict(facts), indent=1)


def same_version(asked: str, got: str) -> bool:
    """Return true if ``got`` is the version ``asked``; a local part such as ``+cpu`` counts only if asked for."""
    try:
        wanted, there = Version(asked), Version(got)
    except ValueError:  # also for a number of thousands of digits
        return asked == got
    return wanted.public == there.public and (wanted.local is None or wanted.local == there.local)


def _why(done: Completed) -> str:
    if done.timed_out:
        return f"it took longer than {IMPORT_TIMEOUT:.0f} s"
    if done.status is not None and done.status < 0:
        try:
            return f"ended by {signal.Signals(-done.status).name}"
        except ValueError:
            return f"ended by signal {-done.status}"
    lines = [line.strip() for line in done.errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit status {done.status}"


@dataclass(frozen=True)
class Venv:
    """A build in a virtual environment on this machine, or in the one that an interpreter had already.

    Attributes:
        python: the Python to start.
        homes: the folder that gets a home folder for each process.
        user_base: the user's own packages, for an interpreter that has its torch there.
        compiler_cache: see ``Environment``.
    """

    build: Build
    facts: Facts
    python: Path
    homes: Path
    user_base: str = ""
    compiler_cache: str | None = None
    local: ClassVar[bool] = True

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> HostProcess:
        """Start this environment's Python in its own process group and clean variables; see ``Environment``."""
        home = self._home()
        return HostProcess(
            [str(self.python), *arguments],
            environment=self._variables(home, extra),
            directory=home,
            after=lambda: remove_tree(home),
        )

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        directory: str | None = None,
        extra: Mapping[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> Completed:
        """Run this environment's Python until it ends or ``timeout`` seconds pass; see ``Environment``."""
        home = self._home()
        try:
            return run_command(
                [str(self.python), *arguments],
                environment=self._variables(home, extra),
                directory=directory or home,
                timeout=timeout,
                cancel=cancel,
            )
        finally:
            remove_tree(home)

    def _home(self) -> Path:
        with disk_errors(self.homes):
            # Short, as the sockets of a data loader's workers lie below it: their paths have at most 107 bytes.
            return Path(tempfile.mkdtemp(prefix="h-", dir=self.homes))

    def _variables(self, home: Path, extra: Mapping[str, str] | None) -> dict[str, str]:
        users = {"PYTHONUSERBASE": self.user_base} if self.user_base else {}
        return clean_environment(home, {**users, **(extra or {})})


def check_import(environment: Environment) -> None:
    """Import torch in an environment. Raise ``InstallFailed`` if that fails there, or if it is another version."""
    read_facts(environment.run, environment.build)


def check_gpu(environment: Environment) -> None:
    """Compute on the GPU with a build in its environment. Raise ``InstallFailed`` with the reason if it can't."""
    refused = gpu_failure(environment.run(["-c", GPU_QUERY], timeout=300).output, environment.build)
    if refused:
        raise refused
