"""Partial wheels: the Python files of a nightly, fetched without its binaries (9 MB of 900 MB).

A wheel is a zip archive. The directory at its end has the offset of each file. Python files lie close together, so a
few ranges of bytes have them all (2,098 files of 2.9.0 in five ranges). Over the installation of a neighboring build
they act as the nightly does, if the cause is in the Python. The search uses that for its midpoints only: both ends
of its result are asked again with whole installs, and those answers count.

``RemoteFile`` stays our own, since ``remotezip`` sends one request for each file and ``fsspec`` needs a second HTTP
client (aiohttp) beside httpx.
"""

from __future__ import annotations

import errno
import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from torchbisect.bisect.sources.python_files import is_replaceable
from torchbisect.containers.environment import Venv
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.copies import overlaid_environment, site_packages_of
from torchbisect.core import web
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.printable import one_line
from torchbisect.core.retry import (
    DEFAULT_RETRY,
    Notify,
    RetryPolicy,
    Transient,
    raise_for_transient_status,
    retry_transient,
    silent,
)
from torchbisect.core.scrub import scrub_secrets

#: Files with fewer bytes between them are fetched in one range: a request takes about as long as this many bytes.
_LARGEST_GAP = 128 * 1024
#: The bytes that are fetched first, from the end: mostly enough for the directory of torch's wheel with 12,000 files.
_END_SIZE = 1536 * 1024
#: The bytes of one range, and of all Python files of a wheel: those of 2.9.0 are 9 MB packed and 40 MB unpacked.
_LARGEST_PART = 64 << 20
_MOST_FETCHED = 256 << 20
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15})")
_VERSION = "torch/version.py"
_GIT_VERSION = re.compile(r"^git_version = ['\"]([0-9a-f]+)['\"]", re.MULTILINE)


@dataclass
class RemoteFile(io.RawIOBase):
    """A seekable file on a web server that is read by ranges; bytes are fetched once and kept.

    ``fetched`` is the number of bytes that came over the network.
    """

    url: str
    client: httpx.Client
    notify: Notify = silent
    retry: RetryPolicy = DEFAULT_RETRY
    fetched: int = 0
    _parts: dict[int, bytes] = field(default_factory=dict)
    _size: int | None = None
    _position: int = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = offset + (self.size() if whence == io.SEEK_END else self._position if whence == io.SEEK_CUR else 0)
        if place < 0:  # as for files on disk; zipfile relies on it when a small archive lacks an optional part
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = place
        return place

    def size(self) -> int:
        """Return the length of the file; the first call also fetches its end."""
        if self._size is None:
            self._fetch(f"-{_END_SIZE}")
        assert self._size is not None
        return self._size

    def read(self, count: int = -1) -> bytes:
        stop = self.size() if count < 0 else min(self._position + count, self.size())
        data = b""
        while self._position < stop:
            span = next((s for s, kept in self._parts.items() if s <= self._position < s + len(kept)), None)
            if span is None:
                self.fetch(self._position, stop)
                continue
            piece = self._parts[span][self._position - span : stop - span]
            data += piece
            self._position += len(piece)
        return data

    def fetch(self, start: int, stop: int) -> None:
        """Fetch the bytes from ``start`` to ``stop``, without those already fetched at both ends.

        Raises:
            EOFError: if the file has no such bytes: a server's answer to that says nothing.
        """
        if start < 0 or stop > self.size():
            raise EOFError(f"its directory names bytes {start} to {stop} of {self.size()}")
        for span, kept in sorted(self._parts.items()):
            if span <= start < span + len(kept):
                start = span + len(kept)
            if span < stop <= span + len(kept):
                stop = span
        if start < stop:
            self._fetch(f"{start}-{stop - 1}")

    def _fetch(self, span: str) -> None:
        def ask() -> httpx.Response:
            headers = {"Range": f"bytes={span}", "Accept-Encoding": "identity"}
            try:
                response = web.request(self.client, "GET", self.url, limit=_LARGEST_PART, only=206, headers=headers)
            except httpx.InvalidURL as error:
                raise InstallFailed("bad-wheel", f"{self._name} has no address that can be asked") from error
            except httpx.HTTPError as error:
                raise Transient(scrub_secrets(str(error)) or type(error).__name__) from error
            raise_for_transient_status(response.status_code)
            return response

        response = retry_transient(ask, f"the host of {self._name}", notify=self.notify, retry=self.retry)
        if response.status_code != 206:
            raise InstallFailed(
                "no-ranges", f"{self._name} can't be read in parts (HTTP status {response.status_code})"
            )
        told = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if told is None:
            raise InstallFailed("no-ranges", f"{self._name} can't be read in parts (no Content-Range)")
        start, size = int(told[1]), int(told[2])
        asked = span.partition("-")[0]
        if not response.content or start + len(response.content) > size or asked not in ("", str(start)):
            raise InstallFailed("no-ranges", f"{self._name} can't be read in parts (other bytes came than were asked)")
        self._size = size
        self._parts[start] = response.content
        self.fetched += len(response.content)
        if self.fetched > _MOST_FETCHED:
            raise InstallFailed("bad-wheel", f"{self._name} has too many Python files ({self.fetched} bytes)")

    @property
    def _name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class PartialWheel:
    """The contents of a wheel's Python files by path, the paths of all its files, and the number of bytes fetched."""

    files: dict[str, bytes]
    names: frozenset[str]
    fetched: int


def fetch_python_files(
    url: str,
    *,
    wanted: Callable[[str], bool] = is_replaceable,
    notify: Notify = silent,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> PartialWheel:
    """Fetch the files of a wheel whose paths are ``wanted``, without the rest of it.

    Raises:
        InstallFailed: ``no-ranges`` if the host doesn't send parts of files, ``bad-wheel`` if it is no zip archive.
        IndexUnreachable: if the host does not answer, also after the retries.
    """
    with web.new_client() as client:
        return read_python_files(RemoteFile(url, client, notify, retry), wanted)


def read_python_files(remote: RemoteFile, wanted: Callable[[str], bool] = is_replaceable) -> PartialWheel:
    """Read the ``wanted`` files of a wheel. Raises the errors of ``fetch_python_files``."""
    url = remote.url
    try:
        with zipfile.ZipFile(remote) as archive:
            members = sorted((m for m in archive.infolist() if wanted(m.filename)), key=lambda m: m.header_offset)
            _check_members(members, url)
            ends = _ends_of_members(archive.infolist(), archive.start_dir)
            for start, stop in _joined_spans((m.header_offset, ends[m.header_offset]) for m in members):
                remote.fetch(start, stop)
            files = {member.filename: archive.read(member) for member in members}
            names = frozenset(archive.namelist())
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError) as error:
        # ``zipfile`` raises all of these for an archive that contradicts itself or that is encrypted.
        name, reason = url.rpartition("/")[2], one_line(str(error)) or type(error).__name__
        raise InstallFailed("bad-wheel", f"{name} is no wheel that can be read: {reason}") from error
    return PartialWheel(files, names, remote.fetched)


def _check_members(members: list[zipfile.ZipInfo], url: str) -> None:
    """Refuse files that unpack to more than Python files have, or with a packing that no wheel uses."""
    packings = {member.compress_type for member in members}
    if not packings <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} or sum(m.file_size for m in members) > _MOST_FETCHED:
        raise InstallFailed("bad-wheel", f"the Python files of {url.rpartition('/')[2]} are too large when unpacked")


def _ends_of_members(members: Iterable[zipfile.ZipInfo], end: int) -> dict[int, int]:
    """Return the end of each member by its offset: the offset of the next member, or of the directory."""
    starts = sorted(member.header_offset for member in members)
    return dict(zip(starts, [*starts[1:], end]))


def _joined_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ascending spans that have few bytes between them."""
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start - joined[-1][1] <= _LARGEST_GAP:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined


def python_difference(wheel: PartialWheel, site: Path) -> dict[str, bytes | None]:
    """Return what turns an installation's Python into that of a wheel: contents by path, ``None`` to remove one.

    ``site`` is the installation's site-packages.
    """
    layer: dict[str, bytes | None] = {}
    for path, contents in wheel.files.items():
        there = site / path
        if not there.is_file() or there.read_bytes() != contents:
            layer[path] = contents
    for package in ("torch", "torchgen", "functorch"):
        for place in (site / package).rglob("*.py"):
            path = place.relative_to(site).as_posix()
            if is_replaceable(path) and path not in wheel.names:
                layer[path] = None
    return layer


@contextmanager
def partial_wheel_environment(
    cache: Cache, build: Build, url: str, base: Venv, *, notify: Notify = silent, retry: RetryPolicy = DEFAULT_RETRY
) -> Iterator[tuple[Venv, int]]:
    """Give an environment with one build's Python over another build's binaries, and the number of bytes fetched.

    The facts of the environment name both builds, so that its answers are never taken for those of a whole install.

    Args:
        cache: the cache that has ``base``.
        build: the build whose Python is used.
        url: the address of its wheel.
        base: the installed build whose binaries are used.

    Raise the errors of ``fetch_python_files``, and ``DiskFull`` if there is no room.
    """
    wheel = fetch_python_files(
        url, wanted=lambda path: is_replaceable(path) or path == _VERSION, notify=notify, retry=retry
    )
    git_version = _GIT_VERSION.search(wheel.files.get(_VERSION, b"").decode("utf-8", "replace"))
    name_of_both = f"{git_version.group(1) if git_version else build.version} over {base.facts.torch}"
    with overlaid_environment(
        cache, base, python_difference(wheel, site_packages_of(base)), name_of_both, build
    ) as environment:
        yield environment, wheel.fetched
