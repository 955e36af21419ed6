"""Installation with uv: one virtual environment, one exact build, and errors that name the real cause.

Up to 2.2, torch is compiled against numpy 1 and can't exchange arrays with numpy 2. Its metadata do not say so.

Older releases of inductor import ``torch.utils.cpp_extension``, and that imports ``pkg_resources``. setuptools 70 moved
the ``packaging`` in it, and later versions removed it. torch requires setuptools without an upper bound, if at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uv

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.process.processes import MARK
from torchbisect.containers.process.run_command import Cancelled, Completed, run_command
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.overlay import site_packages
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import temporary_folder
from torchbisect.containers.venv.install_progress import InstallProgress
from torchbisect.containers.venv.install_size import InstallSize, estimated_size, size_of_pins
from torchbisect.containers.venv.uv_errors import error_from_uv, error_of_package, main_line
from torchbisect.core.build import Build
from torchbisect.core.errors import IndexUnreachable, InputError, InstallFailed, MachineError, TorchbisectError
from torchbisect.core.retry import DEFAULT_RETRY, Notify, RetryPolicy, Transient, retry_transient, silent
from torchbisect.core.scrub import scrub_secrets
from torchbisect.core.timing import timed

#: Bytes of a download from which on it is announced, and its progress shown.
LARGE = 10**6
_BROKEN_WHEEL_RETRIES = 3
_DOWNLOADING = re.compile(rb"^[^\S\n]*Downloading (torch\S* \([^)]*\))", re.MULTILINE)


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

    ``notify`` is told of long downloads, and of each wait for a network that fails. Packages come from wheels only,
    which are unpacked and run no code, unless the indexes allow source packages.
    """

    cache: Cache
    interpreter: Interpreter
    indexes: Indexes
    packages: tuple[str, ...] = ()
    notify: Notify = silent
    retry: RetryPolicy = DEFAULT_RETRY
    program: str = field(default_factory=find_uv)

    @timed("install", "environment")
    def make(
        self,
        folder: Path,
        build: Build,
        requirements: list[str],
        cancel: threading.Event | None = None,
        size: InstallSize | None = None,
    ) -> None:
        """Make an environment at ``folder`` and install these requirements in it.

        It is relocatable, so that it can be made under a temporary name. With a ``size``, ``notify`` is told how far a
        large download has come. Raise ``InstallFailed`` if the build can't be
        installed here, and ``InputError`` if a package that the user asked for does not exist. Raise
        ``IndexUnreachable``, ``DiskFull`` or ``MachineError`` if this machine fails, and ``Cancelled`` if ``cancel``
        was set.
        """
        check_no_secrets(self.indexes)
        own = folder / "sdists" if self.indexes.allow_sdists else None
        options = install_options(self.indexes.allow_sdists)
        wanted = [*options, "--python", str(folder / "bin" / "python"), "--", *requirements]

        def ask() -> None:
            # uv starts the environment's Python, which would run the .pth files of an earlier try.
            remove_tree(folder)
            self._venv(folder, build, cancel)
            shown = None
            if size is not None and size.download >= LARGE and cancel is None:
                shown = InstallProgress(f"installing torch {build}", size, self.notify).show
            self._try(wanted, build, cancel, own, shown)

        try:
            retry_install(ask, build, notify=self.notify, retry=self.retry, cancel=cancel)
        except InstallFailed as failed:
            raise blame(failed, self.packages, lambda one: self._resolve(one, cancel, own), str(self.indexes)) from None
        finally:
            if own is not None:
                remove_tree(own)

    def replace_package(self, python: Path, build: Build, requirement: str) -> None:
        """Install one package in place of its other version, whatever torch requires. Raise the errors of ``make``."""
        command = [*install_options(False), "--python", str(python), "--no-deps", "--", requirement]
        with _startup_files_aside(site_packages(python.parents[1])):
            retry_install(
                lambda: self._try(command, build, None),
                build,
                notify=self.notify,
                retry=self.retry,
                cancel=None,
            )

    def size(self, requirements: list[str], build: Build, cancel: threading.Event | None = None) -> InstallSize:
        """Return the size of an install of these requirements; an estimate where no index tells."""
        options = ["--no-header", "--no-annotate", "--only-binary", ":all:", "--python", str(self.interpreter.path)]
        with temporary_folder("resolve") as folder:
            wanted = Path(folder, "requirements.in")
            wanted.write_text("\n".join(requirements), encoding="utf-8")
            done = self._run(["pip", "compile", "--quiet", *options, str(wanted)], cancel)
        pins = [line for line in done.output.splitlines() if line and not line.startswith(("#", " "))]
        found = None
        if done.status == 0:
            found = size_of_pins(pins, self.cache.packages(), self.indexes, self.interpreter)
        return found or estimated_size(build)

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

    def _resolve(self, package: str, cancel: threading.Event | None, own: Path | None) -> str:
        """Return uv's message for one package without torch; empty if it can be had."""
        with temporary_folder("resolve") as empty:
            aside = ["--dry-run", "--target", empty, "--python", str(self.interpreter.path)]
            done = self._run([*install_options(self.indexes.allow_sdists), *aside, "--", package], cancel, own=own)
        return done.errors if done.status else ""

    def _try(
        self,
        arguments: list[str],
        build: Build,
        cancel: threading.Event | None,
        own: Path | None = None,
        on_wait: Callable[[int], None] | None = None,
    ) -> None:
        done = self._run(arguments, cancel, self._report_downloads, own, on_wait)
        if done.status == 0:
            return
        if done.status is not None and done.status < 0:
            raise MachineError(
                f"uv was ended by signal {-done.status} while it installed torch {build}: is memory short?"
            )
        raise error_from_uv(done.errors, build, self.cache.root, packages=self.packages, indexes=str(self.indexes))

    def _run(
        self,
        arguments: list[str],
        cancel: threading.Event | None,
        on_errors: Callable[[bytes], None] | None = None,
        own: Path | None = None,
        on_wait: Callable[[int], None] | None = None,
    ) -> Completed:
        """Run uv in the cache folder, so that it finds no project's settings.

        ``own`` is the folder of an install that runs foreign code: its home and its cache, used by no other.
        """
        command = [self.program, "--no-progress", "--color", "never", *arguments]
        variables = self._environment()
        if own is not None:
            own.mkdir(exist_ok=True)
            variables = {name: value for name, value in variables.items() if name.startswith("UV_") or name in _PASSED}
            variables.update(UV_CACHE_DIR=str(own), UV_NO_CONFIG="1", HOME=str(own), TMPDIR=str(own))
        return run_command(
            command,
            environment=variables,
            directory=self.cache.root,
            cancel=cancel,
            on_errors=on_errors,
            on_wait=on_wait,
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


def install_options(allow_sdists: bool) -> list[str]:
    """Return uv's command for installs that run no code of a package, unless source packages are allowed.

    uv compiles to byte code with the environment's own Python, which runs the ``.pth`` files in it.
    """
    return ["pip", "install", "--only-binary", "torch" if allow_sdists else ":all:", "--no-compile-bytecode"]


def check_no_secrets(indexes: Indexes) -> None:
    """Raise ``InputError`` if an index or a proxy has a password that the code of source packages could read."""
    proxies = {name: os.environ[name] for name in (*PROXIES, *map(str.lower, PROXIES)) if name in os.environ}
    places = {"the index": [*indexes.named, *indexes.find_links], "the proxy": list(proxies.values())}
    for what, urls in places.items():
        secret = next((url for url in urls if indexes.allow_sdists and scrub_secrets(url) != url), None)
        if secret is not None:
            raise InputError(
                "--allow-sdists runs code of packages, which could read the password of "
                f"{what} {scrub_secrets(secret)}: leave it out, or use one without a password"
            )


def blame(
    failed: InstallFailed, packages: Sequence[str], resolve: Callable[[str], str], indexes: str
) -> TorchbisectError:
    """Return the error of an install: ``failed``, or that of a user's package that can't be had without torch either.

    ``resolve`` returns uv's message for one package alone, empty if it can be had.
    """
    for package in packages:
        message = resolve(package)
        error = error_of_package(message, package, indexes) if message else None
        if error is not None:
            return error
    return failed


#: Names of the variables with a proxy; uv reads them in small letters too.
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
#: The user's variables that an install with foreign code gets.
_PASSED = frozenset(
    ("PATH", "LANG", "LC_ALL", "CC", "CXX", "SSL_CERT_FILE", "SSL_CERT_DIR", *PROXIES, *map(str.lower, PROXIES))
)
#: The user's variables of uv that are kept: the ways into a network, and no option of an install.
_KEPT = re.compile(
    r"UV_(?:HTTP_\w+|REQUEST_TIMEOUT|NATIVE_TLS|SYSTEM_CERTS|INSECURE_HOST|KEYRING_PROVIDER|CONFIG_FILE|NO_CONFIG"
    r"|CONCURRENT_\w+|LINK_MODE|INDEX_\w+_(?:USERNAME|PASSWORD)|CREDENTIALS_DIR)"
)


def _overrides_options(name: str) -> bool:
    """Return true if a user's variable would make uv ignore the options that it is given."""
    own = name.startswith("UV_") and not _KEPT.fullmatch(name)
    return own or name in {"VIRTUAL_ENV", "CONDA_PREFIX", MARK} or name.startswith("PYTHON")


@contextlib.contextmanager
def _startup_files_aside(site: Path) -> Iterator[None]:
    """Move the files that a starting Python runs out of a site-packages, and back unless they were replaced."""
    with tempfile.TemporaryDirectory(dir=site.parent) as aside:
        moved = [place for form in ("*.pth", "sitecustomize*", "usercustomize*") for place in site.glob(form)]
        for place in moved:
            os.rename(place, Path(aside, place.name))
        try:
            yield
        finally:
            for place in moved:
                if not os.path.lexists(place):
                    os.rename(Path(aside, place.name), place)


#: Raised with every change to the contents of environments, so that older ones are not used any more.
RECIPE = 2


def environment_key(build: Build, abi: str, base: str, packages: Sequence[str], indexes: Indexes) -> str:
    """Return the name of a build's environment: the build, and a digest of all that decides the contents.

    ``base`` is the identity of the Python or the image that it is made from, ``abi`` the tag of that Python's binary
    interface, such as ``cp311``.
    """
    places = [scrub_secrets(place) for place in (*indexes.named, *indexes.find_links)]
    parts = [build.requirement, base, *packages, RECIPE, places, indexes.allow_sdists]
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
