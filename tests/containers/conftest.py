"""Real wheels in real indexes, on disk and over HTTP, for the real uv; only torch itself is a small package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from loopback import listening
from wheel_tree import WheelTree, with_requirements

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.retry import RetryPolicy


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
    servers = ExitStack()

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

        return Served(servers.enter_context(listening(Handler)), asked)

    with servers:
        yield start


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
        options = {"retry": RetryPolicy(first_wait=0.01, longest_wait=0.05, total=0.15), **options}
        indexes = Indexes(url, allow_sdists=options.pop("allow_sdists", False))
        made.append(VenvEnvironments(cache, interpreter, indexes, **options))
        return made[-1]

    yield begin
    for venvs in made:
        venvs.close()
