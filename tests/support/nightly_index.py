"""A nightly index whose wheels are made on demand from the installed torch.

The wheel of each date is that torch under the name of a nightly, with a matching ``version.py``, metadata and RECORD.
From a culprit date on, one of torch's Python files has a planted change. No wheel is written to disk: the server sends
it from the installed files, so sixty dates take no room. The pages, the names and the failures are those of PyTorch's
own index. The shared libraries, three quarters of the bytes, have a wheel of their own that all dates need, as CUDA's
libraries do. So an install takes 150 MB of disk instead of 600. Python files are deflated, as in PyTorch's wheels.

To look at such an index, run ``python tests/support/nightly_index.py``, which prints its address.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote

from virtual_wheel import VirtualFile, WheelMember, zip_archive

#: With these, two thirds of the files are those that only builds and torch's own tests need; the wheels lack them.
HEADERS = "torch/include/"
LEFT_OUT = ("torch/test/", "torch/bin/test_", "torch/share/")
#: The wheel of the shared libraries. Its version is a local one, which no public index accepts.
LIBRARIES, LIBRARIES_VERSION = "torch_nightly_libraries", "1.0+installed"
LATEST = datetime.date(2026, 10, 20)


@dataclass(frozen=True)
class Change:
    """A change of torch's sources: the text ``old`` in ``file`` (under site-packages) is replaced by ``new``."""

    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        assert text.count(self.old) == 1, f"{self.file} of this torch has no single {self.old!r} to change"
        return text.replace(self.old, self.new)


#: dynamo does not reverse a list, so the graph has its items in the old order.
DYNAMO = Change(
    "torch/_dynamo/variables/lists.py", "            self.items.reverse()\n", "            list(reversed(self.items))\n"
)
#: A decomposition computes a wrong number.
_HARDSIGMOID = (
    "def hardsigmoid(self: Tensor) -> Tensor:\n    return torch.clamp(torch.clamp(self + {}, min=0), max=6) / 6\n"
)
DECOMPOSITION = Change("torch/_decomp/decompositions.py", _HARDSIGMOID.format(3), _HARDSIGMOID.format(2))
#: The import fails, as with a wheel whose libraries do not match.
BROKEN = Change(
    "torch/__init__.py",
    "\nimport builtins\n",
    "\nraise ImportError('libtorch_cpu.so: undefined symbol: planted')\nimport builtins\n",
)

DYNAMO_SCRIPT = """\
import torch


@torch.compile(backend="eager")
def scaled(x):
    factors = [1.0, 2.0, 3.0]
    factors.reverse()
    return x * factors[0]


print(scaled(torch.ones(3)))
"""
DECOMPOSITION_SCRIPT = """\
import torch


@torch.compile(backend="aot_eager_decomp_partition")
def gate(x):
    return torch.nn.functional.hardsigmoid(x) * x


print(gate(torch.linspace(-4, 4, 9)))
"""
SCRIPTS = (DYNAMO_SCRIPT, DECOMPOSITION_SCRIPT)


@dataclass
class NightlyIndex:
    """An index of nightlies, by default of sixty dates. Dates have numbers from 0; the newest is ``LATEST``.

    Attributes:
        count: the number of dates.
        changes: for each change the first date that has it, and the first date after that without it.
        missing: the dates without a wheel.
        broken: the dates whose torch can't be imported.
        busy: for a date, the number of requests for its wheel that get status 503.
        short: for a date, the number of responses with its wheel that end in the middle.
        down: the number of requests, from the first, that get status 503 whatever they ask for.
        roll: the first date of the next minor version.
        git_versions: the commits on the nightly branch, by date; the other dates have invented commits.
        latest: the newest date.
        has_headers: wheels have the headers with which inductor's C++ is compiled.
        served: the bytes sent for each path.
        requests: all requests, each with its method and path.
    """

    count: int = 60
    changes: dict[Change, tuple[int, int]] = field(default_factory=dict)
    missing: frozenset[int] = frozenset()
    broken: frozenset[int] = frozenset()
    busy: dict[int, int] = field(default_factory=dict)
    short: dict[int, int] = field(default_factory=dict)
    down: int = 0
    roll: int = 20
    git_versions: dict[int, str] = field(default_factory=dict)
    latest: datetime.date = LATEST
    has_headers: bool = False
    served: Counter[str] = field(default_factory=Counter)
    requests: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    def __post_init__(self) -> None:
        self.torch = distribution("torch")
        self.site = Path(str(self.torch.locate_file("")))
        for change in [*self.changes, BROKEN]:
            change.applied((self.site / change.file).read_text())
        self._members = self._installed_members()
        self.python = f"cp{sys.version_info[0]}{sys.version_info[1]}"

    def _installed_members(self) -> list[WheelMember]:
        """Return the files of the installed torch, without those that pip made and those in ``LEFT_OUT``."""
        left_out = LEFT_OUT if self.has_headers else (*LEFT_OUT, HEADERS)
        found = []
        for file in self.torch.files or []:
            name = file.as_posix()
            if not name.startswith(("..", *left_out)) and not name.endswith(".pyc") and ".dist-info/" not in name:
                found.append(WheelMember.of(name, self.site / name))
        self._libraries = [member for member in found if member.name.startswith("torch/lib/")]
        return [member for member in found if not member.name.startswith("torch/lib/")]

    def date(self, number: int) -> datetime.date:
        return self.latest - datetime.timedelta(days=self.count - 1 - number)

    def version(self, number: int) -> str:
        minor = 15 if number < self.roll else 16
        return f"2.{minor}.0.dev{self.date(number):%Y%m%d}+cpu"

    def git_version(self, number: int) -> str:
        return self.git_versions.get(number) or hashlib.sha1(f"nightly {number}".encode()).hexdigest()

    def name(self, number: int) -> str:
        platform = "manylinux_2_28_x86_64" if os.uname().machine == "x86_64" else f"manylinux_2_28_{os.uname().machine}"
        return f"torch-{self.version(number)}-{self.python}-{self.python}-{platform}.whl"

    def metadata(self, number: int) -> str:
        text = self.torch.read_text("METADATA") or ""
        version = f"\nVersion: {self.version(number)}\nRequires-Dist: {LIBRARIES}=={LIBRARIES_VERSION}\n"
        return text.replace(f"\nVersion: {self.torch.version}\n", version, 1)

    @property
    def libraries_name(self) -> str:
        return f"{LIBRARIES}-{LIBRARIES_VERSION}-" + self.name(0).split("-", 2)[2]

    def libraries_metadata(self) -> str:
        return f"Metadata-Version: 2.1\nName: {LIBRARIES}\nVersion: {LIBRARIES_VERSION}\n"

    def libraries(self) -> VirtualFile:
        """Return the wheel of the shared libraries."""
        info = f"{LIBRARIES}-{LIBRARIES_VERSION}.dist-info"
        return self._wheel_of(self._libraries, info, self.libraries_metadata(), self.libraries_name)

    def wheel(self, number: int) -> VirtualFile:
        """Return the wheel of a date."""
        changes = [change for change, (first, end) in self.changes.items() if first <= number < end]
        changes += [BROKEN] if number in self.broken else []
        changed = {change.file for change in changes}
        members = []
        for member in self._members:
            if member.name in changed:
                text = (self.site / member.name).read_text()
                for change in changes:
                    text = change.applied(text) if change.file == member.name else text
                members.append(WheelMember.of(member.name, text.encode()))
            elif member.name == "torch/version.py":
                members.append(WheelMember.of(member.name, self._version_file(number).encode()))
            else:
                members.append(member)
        info = f"torch-{self.version(number)}.dist-info"
        return self._wheel_of(members, info, self.metadata(number), self.name(number))

    def _wheel_of(self, members: list[WheelMember], info: str, metadata: str, name: str) -> VirtualFile:
        """Return a wheel of these files, with its metadata and RECORD."""
        tag = name.removesuffix(".whl").split("-", 2)[2]
        told = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n"
        members = [
            *members,
            WheelMember.of(f"{info}/METADATA", metadata.encode()),
            WheelMember.of(f"{info}/WHEEL", told.encode()),
        ]
        record = "".join(f"{member.name},sha256={member.digest},{member.size}\n" for member in members)
        members.append(WheelMember.of(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
        return zip_archive(members)

    def _version_file(self, number: int) -> str:
        text = (self.site / "torch/version.py").read_text()
        lines = []
        for line in text.splitlines(keepends=True):
            if line.startswith("__version__ ="):
                line = f"__version__ = {self.version(number)!r}\n"
            elif line.startswith("git_version ="):
                line = f"git_version = {self.git_version(number)!r}\n"
            lines.append(line)
        return "".join(lines)

    def page(self, project: str = "torch") -> str:
        """Return the page of a project, newest first, as ``manage_v2.py`` writes it."""
        names = [self.libraries_name]
        if project == "torch":
            names = [self.name(number) for number in reversed(range(self.count)) if number not in self.missing]
        links = [
            f'    <a href="/whl/nightly/cpu/{name.replace("+", "%2B")}" '
            f'data-dist-info-metadata="true" data-core-metadata="true">{name}</a><br/>'
            for name in names
        ]
        body = "\n".join([f"    <h1>Links for {project}</h1>", *links])
        return f"<!DOCTYPE html>\n<html>\n  <body>\n{body}\n  </body>\n</html>\n<!--TIMESTAMP 1792500000-->"

    def start(self) -> str:
        """Serve the index on loopback; return the address of the variant ``cpu``."""
        index = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                index.answer(self)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/whl/nightly/cpu"

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request as the real index and its hosts do."""
        path = unquote(request.path)
        with self._lock:
            self.requests.append(f"{request.command} {path}")
            down = len(self.requests) <= self.down
        if down:
            return self._refuse(request, 503)
        place = path.rstrip("/").removeprefix("/whl/nightly/cpu/")
        if place in ("torch", LIBRARIES.replace("_", "-")):
            return self._send(request, VirtualFile([self.page(place).encode()]), "text/html")
        if place == f"{self.libraries_name}.metadata":
            return self._send(request, VirtualFile([self.libraries_metadata().encode()]), "text/plain")
        if place == self.libraries_name:
            return self._send(request, self.libraries(), "binary/octet-stream")
        for number in set(range(self.count)) - self.missing:
            if path == f"/whl/nightly/cpu/{self.name(number)}.metadata":
                return self._send(request, VirtualFile([self.metadata(number).encode()]), "text/plain")
            if path == f"/whl/nightly/cpu/{self.name(number)}":
                if request.command == "GET" and self._use_up(self.busy, number):
                    return self._refuse(request, 503)
                cut = request.command == "GET" and self._use_up(self.short, number)
                return self._send(request, self.wheel(number), "binary/octet-stream", cut=cut)
        return self._refuse(request, 404)

    def _use_up(self, failures: dict[int, int], number: int) -> bool:
        with self._lock:
            left = failures.get(number, 0)
            failures[number] = max(left - 1, 0)
            return left > 0

    def _refuse(self, request: BaseHTTPRequestHandler, status: int) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _send(self, request: BaseHTTPRequestHandler, file: VirtualFile, kind: str, *, cut: bool = False) -> None:
        start, stop = 0, file.size
        ranged = request.headers.get("Range", "").removeprefix("bytes=")
        if ranged and "," not in ranged:
            low, _, high = ranged.partition("-")
            start, stop = (int(low), int(high or file.size - 1) + 1) if low else (file.size - int(high), file.size)
            stop = min(stop, file.size)
        request.send_response(206 if ranged else 200)
        request.send_header("Content-Type", kind)
        request.send_header("Accept-Ranges", "bytes")
        request.send_header("Content-Length", str(stop - start))
        if ranged:
            request.send_header("Content-Range", f"bytes {start}-{stop - 1}/{file.size}")
        request.end_headers()
        if request.command == "HEAD":
            return
        try:
            for chunk in file.chunks(start, (start + stop) // 2 if cut else stop):
                request.wfile.write(chunk)
                with self._lock:
                    self.served[unquote(request.path)] += len(chunk)
        except OSError:  # the installer gave up or was killed
            request.close_connection = True
        if cut:
            request.close_connection = True
            request.connection.close()


if __name__ == "__main__":
    served = NightlyIndex(changes={DYNAMO: (23, 60), DECOMPOSITION: (37, 60)})
    print(served.start(), flush=True)
    threading.Event().wait()
