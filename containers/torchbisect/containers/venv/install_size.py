"""Size of an install before anything is fetched, without the packages that the cache has already.

Indexes tell the size of a wheel (PEP 700), or the server of the file does. The size on disk follows from it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import httpx
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from torchbisect.containers.index.cpu_index import CPU_INDEX
from torchbisect.containers.index.indexes import Indexes, file_path
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import format_bytes
from torchbisect.core import web
from torchbisect.core.build import Build
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.footprint import CPU, CUDA, footprint_of
from torchbisect.core.retry import RetryPolicy

#: Seconds for all indexes and servers together; after that the sizes are estimated.
_LONGEST = 10.0
_AT_ONCE = 8
#: Bytes that a build for the CPU does not reach.
_MOST_OF_CPU = 10**9
_SMALLER = f"wheels for the CPU are far smaller: --variant cpu --extra-index-url {CPU_INDEX}"
_ONCE = RetryPolicy(total=0.0)


@dataclass(frozen=True)
class InstallSize:
    """Bytes to download for an install, and bytes that it adds on disk; not ``exact`` if no index told them."""

    download: int
    disk: int
    exact: bool = True


def estimated_size(build: Build) -> InstallSize:
    """Return the size of a build and all its requirements by what such builds were measured to take."""
    size = footprint_of(build)
    return InstallSize(size.download + size.shared_download, size.installed + size.shared_installed, exact=False)


def size_in_words(build: Build, size: InstallSize, cache: Cache) -> str:
    """Return the line before the first download: its size, where it goes, and how to make it smaller."""
    bytes_told = f"{format_bytes(size.download)} to download and {format_bytes(size.disk)} of disk"
    told = bytes_told if size.exact else f"about {bytes_told} (an estimate: the index does not tell)"
    kept = f"in {cache.root}, kept to {format_bytes(cache.limit)} (--cache-dir and --cache-limit change that)"
    smaller = "" if Version(build.version).local == "cpu" or size.download < _MOST_OF_CPU else f"; {_SMALLER}"
    return f"torch {build} and its requirements: {told} {kept}{smaller}"


def size_of_pins(
    pins: Iterable[str], present: Iterable[str], indexes: Indexes, interpreter: Interpreter
) -> InstallSize | None:
    """Return the size of an install, or ``None`` if the size of a wheel can't be found out.

    Args:
        pins: the packages that would be installed, as exact requirements.
        present: those that need no download, each as ``name-version``.
        indexes: the places where they come from.
        interpreter: the Python that they must fit.
    """
    try:
        wanted = [Requirement(pin) for pin in pins]
    except InvalidRequirement:
        return None
    have = {_identity(*name.rsplit("-", 1)) for name in present if "-" in name}
    missing = [one for one in wanted if _identity(one.name, _version(one)) not in have]
    sizes = _sizes(missing, indexes, interpreter)
    if sizes is None:
        return None
    return InstallSize(sum(sizes), _unpacked(sum(sizes), wanted))


def _unpacked(download: int, wanted: Sequence[Requirement]) -> int:
    """Return the bytes of unpacked wheels; code for the CPU packs better than code for GPUs."""
    measured = CUDA if any(one.name.startswith("nvidia-") for one in wanted) else CPU
    packed = measured.download + measured.shared_download
    return download * (measured.installed + measured.shared_installed) // packed


def _sizes(missing: Sequence[Requirement], indexes: Indexes, interpreter: Interpreter) -> list[int] | None:
    pool = ThreadPoolExecutor(_AT_ONCE)
    until = time.monotonic() + _LONGEST
    try:
        asked: list[Future[int | None]] = [pool.submit(_size, one, indexes, interpreter) for one in missing]
        wait(asked, timeout=until - time.monotonic())
        found = [one.result() if one.done() else None for one in asked]
    except (TorchbisectError, OSError, ValueError):
        return None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    known = [size for size in found if size is not None]
    return known if len(known) == len(missing) else None


def _size(pin: Requirement, indexes: Indexes, interpreter: Interpreter) -> int | None:
    """Return the bytes of the wheel that fits, or ``None`` if nobody tells them."""
    if pin.url:
        return _content_length(pin.url)
    # Imported late: a command that installs nothing begins sooner without.
    from torchbisect.containers.index.pages import packages

    for package in packages(indexes, pin.name, retry=_ONCE):
        try:
            version = parse_wheel_filename(package.filename)[1]
        except (InvalidWheelFilename, ValueError):
            continue
        if str(version) == _version(pin) and interpreter.accepts(package.filename):
            return package.size if package.size is not None else _content_length(package.url)
    return None


def _content_length(url: str) -> int | None:
    if url.startswith("file://"):
        return Path(file_path(url.partition("#")[0])).stat().st_size
    with web.new_client() as client:
        try:
            answer = web.request(client, "HEAD", url)
        except httpx.HTTPError:
            return None
    told = answer.headers.get("Content-Length", "")
    return int(told) if answer.status_code == 200 and told.isdigit() else None


def _version(pin: Requirement) -> str:
    """Return the version of an exact requirement; empty for an address."""
    return next((_normal(one.version) for one in pin.specifier), "")


def _identity(name: str, version: str) -> tuple[str, str]:
    return canonicalize_name(name), _normal(version)


def _normal(version: str) -> str:
    try:
        return str(Version(version))
    except InvalidVersion:
        return version
