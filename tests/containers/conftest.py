"""Real wheels in real indexes, on disk and over HTTP, for the real uv; only torch itself is a small package."""

from __future__ import annotations

import base64
import hashlib
import html
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.retry import RetryPolicy

#: Source of the package torch in these tests: just enough for its version to be read back.
SOURCE = "__version__ = {version!r}\n\n\nclass version:\n    git_version = 'c0ffee'\n    cuda = None\n"


@dataclass
class WheelTree:
    """A PEP 503 index in a folder, filled with small wheels in the real format."""

    root: Path
    links: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return (self.root / "simple").as_uri()

    @property
    def files(self) -> Path:
        return self.root / "files"

    def add(
        self,
        project: str,
        version: str,
        *,
        source: str | None = None,
        requires: tuple[str, ...] = (),
        tag: str = "py3-none-any",
        attributes: str = "",
        python: str | None = None,
        present: bool = True,
    ) -> Path:
        """Build a wheel, add it to the index and return its path; ``present=False`` lists it and removes the file."""
        info = f"{project}-{version}.dist-info"
        metadata = [f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}"]
        metadata += [f"Requires-Dist: {one}" for one in requires]
        metadata += [f"Requires-Python: {python}"] if python else []
        text = SOURCE.format(version=version) if source is None else source
        contents = {
            f"{project}/__init__.py": text,
            f"{info}/METADATA": "\n".join(metadata) + "\n",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        contents[f"{info}/RECORD"] = "".join(map(_record, contents.items())) + f"{info}/RECORD,,\n"
        wheel = self.files / f"{project}-{version}-{tag}.whl"
        wheel.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, body in contents.items():
                archive.writestr(name, body)
        self.links.setdefault(project, []).append((wheel.name, attributes))
        self._write(project)
        if not present:
            wheel.unlink()
        return wheel

    def _write(self, project: str) -> None:
        page = self.root / "simple" / project / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            f'<a href="../../files/{name.replace("+", "%2B")}" {attributes}>{html.escape(name)}</a><br/>'
            for name, attributes in self.links[project]
        ]
        page.write_text("<!DOCTYPE html>\n<html><body>\n" + "\n".join(lines) + "\n</body></html>\n", encoding="utf-8")


def _record(item: tuple[str, str]) -> str:
    name, body = item
    digest = base64.urlsafe_b64encode(hashlib.sha256(body.encode()).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(body)}\n"


def with_requirements(tree: WheelTree) -> WheelTree:
    """Add the packages that every environment gets beside torch."""
    for name, versions in (("numpy", ("1.26.4", "2.1.0")), ("setuptools", ("69.5.1", "80.9.0", "82.0.0"))):
        for version in versions:
            tree.add(name, version, source=f"__version__ = {version!r}\n")
    return tree


@pytest.fixture(scope="session")
def make_tree() -> Callable[[Path], WheelTree]:
    """Return a function that makes an index in a folder, with torch's requirements and no torch yet."""
    return lambda root: with_requirements(WheelTree(root))


@pytest.fixture
def tree(tmp_path: Path, make_tree: Callable[[Path], WheelTree]) -> WheelTree:
    """Index of one test."""
    return make_tree(tmp_path / "index")


@pytest.fixture(scope="session")
def interpreter() -> Interpreter:
    return Interpreter.of(sys.executable)


@dataclass(frozen=True)
class Answer:
    """Answer of a server to one request; a ``length`` beyond the body's cuts the answer off."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/html"
    length: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Served:
    """A server on the loopback: its address and the paths of the requests."""

    url: str
    asked: list[str]


def serving() -> Iterator[Callable[[Callable[[str], Answer]], Served]]:
    """Yield a function that starts servers which answer each path as a function says; then stop them."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Callable[[str], Answer]) -> Served:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                told = answer(self.path)
                self.send_response(told.status)
                self.send_header("Content-Type", told.kind)
                self.send_header("Content-Length", str(len(told.body) if told.length is None else told.length))
                for name, value in told.headers:
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(told.body)

            do_HEAD = do_GET

            def log_message(self, *arguments: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return Served(f"http://127.0.0.1:{server.server_address[1]}", asked)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[str], Answer]], Served]]:
    """Start servers that end with the test."""
    yield from serving()


def folder_answers(tree: WheelTree, change: Callable[[str, Answer], Answer]) -> Callable[[str], Answer]:
    """Return answers from an index's folder, as changed by a function of the path and the answer."""

    def answer(path: str) -> Answer:
        place = tree.root / path.lstrip("/").replace("%2B", "+")
        place = place / "index.html" if place.is_dir() else place
        if not place.is_file():
            return change(path, Answer(404))
        kind = "text/html" if place.suffix == ".html" else "application/octet-stream"
        return change(path, Answer(body=place.read_bytes(), kind=kind))

    return answer


def unchanged(path: str, told: Answer) -> Answer:
    return told


@pytest.fixture
def answer() -> type[Answer]:
    """The class of ``serve``'s answers; a fixture, since test modules don't import from each other."""
    return Answer


@pytest.fixture
def serve_tree(serve: Callable[[Callable[[str], Answer]], Served]) -> Callable[..., Served]:
    """Serve an index's folder over HTTP until the end of the test."""
    return lambda tree, change=unchanged: serve(folder_answers(tree, change))


@pytest.fixture(scope="module")
def serve_longer() -> Iterator[Callable[[Callable[[str], Answer]], Served]]:
    """Start servers that end with the module's tests."""
    yield from serving()


@pytest.fixture(scope="module")
def serve_tree_longer(serve_longer: Callable[[Callable[[str], Answer]], Served]) -> Callable[[WheelTree], Served]:
    """Serve an index's folder over HTTP until the end of the module's tests."""
    return lambda tree: serve_longer(folder_answers(tree, unchanged))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def make(cache: Cache, interpreter: Interpreter) -> Iterator[Callable[..., VenvEnvironments]]:
    """Make environments from the index at an address, with short waits; closed after the test."""
    made: list[VenvEnvironments] = []

    def begin(url: str, **options: Any) -> VenvEnvironments:
        options = {"retry": RetryPolicy(first_wait=0.01, longest_wait=0.05, total=0.15), "free_space": 0, **options}
        made.append(VenvEnvironments(cache, interpreter, Indexes(url), **options))
        return made[-1]

    yield begin
    for venvs in made:
        venvs.close()
