"""Installation with uv: one virtual environment, one exact build, and errors that name the real cause.

Up to 2.2, torch is compiled against numpy 1 and can't exchange arrays with numpy 2. Its metadata do not say so.

Older releases of inductor import ``torch.utils.cpp_extension``, and that imports ``pkg_resources``. setuptools 70 moved
the ``packaging`` in it, and later versions removed it. torch requires setuptools without an upper bound, if at all.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uv

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.process.commands import Cancelled, Completed, run_command
from torchbisect.containers.process.processes import MARK
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.uv_errors import error_from_uv, main_line
from torchbisect.core.build import Build
from torchbisect.core.errors import IndexUnreachable, InstallFailed, MachineError
from torchbisect.core.retry import DEFAULT_RETRY, Notify, RetryPolicy, Transient, retry_transient, silent

_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_BROKEN_WHEEL_RETRIES = 3
_DOWNLOADING = re.compile(rb"^\s*Downloading (torch\S* \([^)]*\))", re.MULTILINE)


def find_uv() -> str:
    """Return the path of the uv that was installed with torchbisect. Raise ``MachineError`` if it isn't there."""
    try:
        return str(uv.find_uv_bin())
    except FileNotFoundError as error:
        raise MachineError(
            "uv, which makes the environments, isn't there: install it again with `pip install uv`"
        ) from error


@dataclass(frozen=True)
class Installer:
    """Makes environments for one Python from one set of indexes, with ``packages`` beside torch.

    ``notify`` is told of long downloads, and of each wait for a network that fails.
    """

    cache: Cache
    interpreter: Interpreter
    indexes: Indexes
    packages: tuple[str, ...] = ()
    notify: Notify = silent
    retry: RetryPolicy = DEFAULT_RETRY
    program: str = field(default_factory=find_uv)

    def make(self, folder: Path, build: Build, requirements: list[str], cancel: threading.Event | None = None) -> None:
        """Make an environment at ``folder`` and install these requirements in it.

        It is relocatable, so that it can be made under a temporary name. Raise ``InstallFailed`` if the build can't be
        installed here, and ``InputError`` if a package that the user asked for does not exist. Raise
        ``IndexUnreachable``, ``DiskFull`` or ``MachineError`` if this machine fails, and ``Cancelled`` if ``cancel``
        was set.
        """
        self._venv(folder, build, cancel)
        command = ["pip", "install", "--python", str(folder / "bin" / "python"), "--only-binary", "torch"]
        self._install([*command, *requirements], build, cancel)

    def replace_package(self, python: Path, build: Build, requirement: str) -> None:
        """Install one package in place of its other version, whatever torch requires. Raise the errors of ``make``."""
        command = ["pip", "install", "--python", str(python), "--no-deps", "--only-binary", ":all:", requirement]
        self._install(command, build, None)

    def remove_wheels(self, packages: list[str]) -> None:
        """Remove these packages from the wheels, unless an install is running."""
        with self.cache.wheels_lock(shared=False).if_free() as free:
            if free:
                self._run(["cache", "clean", *packages], None)

    def _venv(self, folder: Path, build: Build, cancel: threading.Event | None) -> None:
        done = self._run(["venv", "--relocatable", "--python", str(self.interpreter.path), str(folder)], cancel)
        if done.status:
            error = error_from_uv(done.errors, build, folder)
            # An empty environment that can't be made is not the build's fault.
            reason = main_line(done.errors)
            failed = MachineError(
                f"no environment could be made with {self.interpreter.path} ({reason}): name another --python"
            )
            raise failed if isinstance(error, (InstallFailed, Transient)) else error

    def _install(self, arguments: list[str], build: Build, cancel: threading.Event | None) -> None:
        ask = functools.partial(self._try, arguments, build, cancel)
        retry_install(ask, build, notify=self.notify, retry=self.retry, cancel=cancel)

    def _try(self, arguments: list[str], build: Build, cancel: threading.Event | None) -> None:
        done = self._run(arguments, cancel, self._report_downloads)
        if done.status == 0:
            return
        if done.status is not None and done.status < 0:
            raise MachineError(
                f"uv was ended by signal {-done.status} while it installed torch {build}: is memory short?"
            )
        names = package_names(self.packages)
        raise error_from_uv(done.errors, build, self.cache.root, packages=names, indexes=str(self.indexes))

    def _run(
        self, arguments: list[str], cancel: threading.Event | None, on_errors: Callable[[bytes], None] | None = None
    ) -> Completed:
        """Run uv in the cache folder, so that it finds no project's settings."""
        command = [self.program, *arguments, "--no-progress", "--color", "never"]
        return run_command(
            command, environment=self._environment(), directory=self.cache.root, cancel=cancel, on_errors=on_errors
        )

    def _environment(self) -> dict[str, str]:
        """Return the user's variables for uv, which is trusted and needs their proxies and credentials."""
        variables = {name: value for name, value in os.environ.items() if not _overrides_options(name)}
        variables.setdefault("UV_HTTP_TIMEOUT", "120")
        variables.update(self.indexes.uv_variables())
        variables.update(
            UV_CACHE_DIR=str(self.cache.wheels),
            UV_LINK_MODE=variables.get("UV_LINK_MODE", "hardlink"),
            UV_HTTP_RETRIES="0",  # retry_install waits between tries, and reports the waits
            UV_PYTHON_DOWNLOADS="never",
        )
        return variables

    def _report_downloads(self, data: bytes) -> None:
        for found in _DOWNLOADING.findall(data):
            self.notify(f"downloading {found.decode('utf-8', 'replace')}")


def retry_install(
    install: Callable[[], None], build: Build, *, notify: Notify, retry: RetryPolicy, cancel: threading.Event | None
) -> None:
    """Call ``install`` until it succeeds or fails for good, with growing waits while the network fails.

    Raise ``IndexUnreachable`` if it still fails after the last try, ``Cancelled`` if ``cancel`` is set during a wait.
    """
    broken: list[InstallFailed] = []

    def ask() -> None:
        try:
            install()
        except InstallFailed as failed:
            # To uv a cut-off download looks like a broken file; only a file that stays broken is one.
            broken.append(failed)
            if failed.reason != "broken-wheel" or len(broken) > _BROKEN_WHEEL_RETRIES:
                raise
            raise Transient(str(failed)) from failed

    def wait(seconds: float) -> None:
        if (cancel or threading.Event()).wait(seconds):
            raise Cancelled

    try:
        retry_transient(ask, f"the index for torch {build}", notify=notify, retry=retry, wait=wait)
    except IndexUnreachable as unreachable:
        last = unreachable.__cause__.__cause__ if unreachable.__cause__ else None
        if isinstance(last, InstallFailed):
            raise last from None
        raise


def package_names(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in these requirements."""
    return tuple(found.group() for package in packages if (found := _PACKAGE.match(package)))


def _overrides_options(name: str) -> bool:
    """Return true if a user's variable would make uv ignore the options that it is given."""
    return (
        name in {"VIRTUAL_ENV", "CONDA_PREFIX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_PYTHON", "UV_SYSTEM_PYTHON"}
        or name in {"UV_CONSTRAINT", "UV_OVERRIDE", "UV_EXCLUDE_NEWER", "UV_TARGET", "UV_PREFIX", "UV_OFFLINE", MARK}
        or name.startswith("PYTHON")
    )


#: Raised with every change to the contents of environments, so that older ones are not used any more.
RECIPE = 1


def environment_key(build: Build, abi: str, base: str, packages: Sequence[str], indexes: Indexes) -> str:
    """Return the name of a build's environment: the build, and a digest of all that decides the contents.

    ``base`` is the identity of the Python or the image that it is made from, ``abi`` the tag of that Python's binary
    interface, such as ``cp311``.
    """
    parts = [build.requirement, base, *packages, RECIPE, indexes.urls, indexes.find_links]
    digest = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:10]
    return f"torch-{build.name}-{abi}-{digest}"


def requirements(build: Build, packages: tuple[str, ...] = ()) -> list[str]:
    """Return the requirements of an environment: the build, pinned exactly, and its companions.

    Versions of ``numpy`` or ``setuptools`` in ``packages``, the user's requirements, are combined with ours.
    """
    if build.minor < (2, 7):
        setuptools = "setuptools<70"
    elif build.minor < (2, 11):
        setuptools = "setuptools<81"
    else:
        setuptools = "setuptools"
    numpy = "numpy<2" if build.minor < (2, 3) else "numpy"
    return [build.requirement, setuptools, numpy, *packages]
