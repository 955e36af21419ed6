"""The Python of a wheel without its binaries: a nightly of 900 MB asked for 9 MB.

A wheel is a zip archive, whose directory is at its end and says where each file lies. Python files lie close together,
so a few ranges of bytes fetch them all (2.9.0's 2,098 in five). Laid over an installed neighbour they make what the
nightly is, as far as its Python goes. It is a guess for the middle of a search: its two ends are asked again on whole
installs, and those are believed.
"""

from __future__ import annotations

import errno
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from torchbisect.bisect.sources.python_files import is_replaceable
from torchbisect.containers.index.pages import new_client
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.copies import overlaid, packages_of
from torchbisect.containers.venv.venv import Venv
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.retry import (
    DEFAULT_PATIENCE,
    Notify,
    Patience,
    Transient,
    keep_asking,
    raise_for_transient_status,
    silent,
)

#: Files with less than this between them are fetched in one range: a request costs about as long as so many bytes.
_GAP = 128 * 1024
#: What is fetched first: enough for the directory of a wheel of torch, 12,000 files, in most cases.
_TAIL = 1536 * 1024
_VERSION = "torch/version.py"
_GIT_VERSION = re.compile(r"^git_version = ['\"]([0-9a-f]+)['\"]", re.MULTILINE)


@dataclass
class RemoteFile(io.RawIOBase):
    """A file on a web server, read by ranges; what was read once is kept.

    Attributes:
        fetched: bytes that came over the network.
        requests: how many times the server was asked.
    """

    url: str
    client: httpx.Client
    notify: Notify = silent
    patience: Patience = DEFAULT_PATIENCE
    fetched: int = 0
    requests: int = 0
    _spans: dict[int, bytes] = field(default_factory=dict)
    _size: int | None = None
    _at: int = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = offset + (self.size() if whence == io.SEEK_END else self._at if whence == io.SEEK_CUR else 0)
        if place < 0:  # as files on disk do; zipfile counts on it when it looks for parts that small archives lack
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = place
        return place

    def size(self) -> int:
        """How long the file is. Its end is fetched with the answer."""
        if self._size is None:
            self._fetch(f"-{_TAIL}")
        assert self._size is not None
        return self._size

    def read(self, count: int = -1) -> bytes:
        stop = self.size() if count < 0 else min(self._at + count, self.size())
        data = b""
        while self._at < stop:
            span = next((s for s, kept in self._spans.items() if s <= self._at < s + len(kept)), None)
            if span is None:
                self.want(self._at, stop)
                continue
            piece = self._spans[span][self._at - span : stop - span]
            data += piece
            self._at += len(piece)
        return data

    def want(self, start: int, stop: int) -> None:
        """Fetch a range that will be read, or what of it isn't there yet."""
        for span, kept in sorted(self._spans.items()):
            if span <= start < span + len(kept):
                start = span + len(kept)
            if span < stop <= span + len(kept):
                stop = span
        if start < stop:
            self._fetch(f"{start}-{stop - 1}")

    def _fetch(self, span: str) -> None:
        def ask() -> httpx.Response:
            self.requests += 1
            try:
                response = self.client.get(self.url, headers={"Range": f"bytes={span}", "Accept-Encoding": "identity"})
            except httpx.HTTPError as error:
                raise Transient(str(error) or type(error).__name__) from error
            raise_for_transient_status(response.status_code)
            return response

        response = keep_asking(ask, f"the host of {self._name}", notify=self.notify, patience=self.patience)
        if response.status_code != 206:
            raise InstallFailed(
                "no-ranges", f"{self._name} can't be read in parts (HTTP status {response.status_code})"
            )
        place, _, size = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
        if not size.isdigit() or not place.partition("-")[0].isdigit():
            raise InstallFailed("no-ranges", f"{self._name} can't be read in parts (no Content-Range)")
        self._size = int(size)
        self._spans[int(place.partition("-")[0])] = response.content
        self.fetched += len(response.content)

    @property
    def _name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class PartialWheel:
    """The Python files of a wheel, and what they cost.

    Attributes:
        files: contents by path.
        names: the paths of all files in the wheel.
        fetched: bytes that came over the network.
    """

    files: dict[str, bytes]
    names: frozenset[str]
    fetched: int


def fetch_python_files(
    url: str,
    *,
    wanted: Callable[[str], bool] = is_replaceable,
    notify: Notify = silent,
    patience: Patience = DEFAULT_PATIENCE,
) -> PartialWheel:
    """Fetch the Python files of a wheel, and nothing else of it.

    Raises:
        InstallFailed: ``no-ranges`` if the host doesn't send parts of files, ``bad-wheel`` if it is no zip archive.
        IndexUnreachable: if the host doesn't answer, also after the retries.
    """
    with new_client() as client:
        remote = RemoteFile(url, client, notify, patience)
        try:
            with zipfile.ZipFile(remote) as archive:
                members = sorted((m for m in archive.infolist() if wanted(m.filename)), key=lambda m: m.header_offset)
                following = _following(archive.infolist(), archive.start_dir)
                for start, stop in _runs((m.header_offset, following[m.header_offset]) for m in members):
                    remote.want(start, stop)
                files = {member.filename: archive.read(member) for member in members}
                names = frozenset(archive.namelist())
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise InstallFailed(
                "bad-wheel", f"{url.rpartition('/')[2]} is no wheel that can be read: {error}"
            ) from error
        return PartialWheel(files, names, remote.fetched)


def _following(members: Iterable[zipfile.ZipInfo], end: int) -> dict[int, int]:
    """Where what follows each member begins, by where the member begins."""
    starts = sorted(member.header_offset for member in members)
    return dict(zip(starts, [*starts[1:], end]))


def _runs(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in ascending order joined where little lies between them."""
    runs: list[tuple[int, int]] = []
    for start, stop in spans:
        if runs and start - runs[-1][1] <= _GAP:
            runs[-1] = (runs[-1][0], stop)
        else:
            runs.append((start, stop))
    return runs


def python_difference(wheel: PartialWheel, site: Path) -> dict[str, bytes | None]:
    """What turns the Python of an installation into that of a wheel.

    Args:
        site: the installation's site-packages.
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
    cache: Cache, build: Build, url: str, base: Venv, *, notify: Notify = silent, patience: Patience = DEFAULT_PATIENCE
) -> Iterator[tuple[Venv, int]]:
    """An environment with the Python of a build over the binaries of another, and the bytes that were fetched for it.

    What is read back from it names both builds, so that no answer of it is ever taken for one of a whole install.

    Args:
        cache: the cache that ``base`` lies in.
        build: whose Python.
        url: its wheel.
        base: the installed neighbour.

    Raises:
        InstallFailed, IndexUnreachable: as ``fetch_python_files`` does.
        DiskFull: if there is no room.
    """
    wheel = fetch_python_files(
        url, wanted=lambda path: is_replaceable(path) or path == _VERSION, notify=notify, patience=patience
    )
    said = _GIT_VERSION.search(wheel.files.get(_VERSION, b"").decode("utf-8", "replace"))
    both = f"{said.group(1) if said else build.version} over {base.facts.torch}"
    with overlaid(cache, base, python_difference(wheel, packages_of(base)), both, build) as environment:
        yield environment, wheel.fetched
