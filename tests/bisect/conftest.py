"""Index pages as PyTorch writes them, an HTTP server, and descriptions of Pythons for other platforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from loopback import listening
from pypi_simple import DistributionPackage, ProjectPage

from torchbisect.containers.python.interpreter import Interpreter

LINUX = (
    "manylinux_2_36_x86_64",
    "manylinux_2_28_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "linux_x86_64",
)
MAC = ("macosx_15_0_arm64", "macosx_14_0_arm64", "macosx_12_0_arm64", "macosx_11_0_arm64")


def page_text(hrefs: list[str], project: str = "torch") -> str:
    """Return a page as ``manage_v2.py`` writes it."""
    links = [
        f'    <a href="{href}" data-upload-time="2026-08-17T09:12:44Z">'
        f"{href.rpartition('/')[2].replace('%2B', '+')}</a><br/>"
        for href in hrefs
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            "<html>",
            "  <body>",
            f"    <h1>Links for {project}</h1>",
            *links,
            "  </body>",
            "</html>",
            "<!--TIMESTAMP 1755400000-->",
        ]
    )


@pytest.fixture
def page() -> Callable[..., list[DistributionPackage]]:
    """Make the files of a page with wheels of these names, as read from PyTorch's own index."""

    def make(
        names: list[str], base: str = "https://download-r2.pytorch.org/whl/nightly/cpu/"
    ) -> list[DistributionPackage]:
        text = page_text([base + name.replace("+", "%2B") for name in names])
        return ProjectPage.from_html("torch", text, "https://download.pytorch.org/whl/nightly/cpu/torch/").packages

    return make


@pytest.fixture
def python() -> Callable[..., Interpreter]:
    """Make the description of a Python, by default on Linux."""

    def make(version: str = "3.11.7", platforms: tuple[str, ...] = LINUX, abi: str | None = None) -> Interpreter:
        major, minor, _ = version.split(".")
        return Interpreter(Path("python"), version, abi or f"cp{major}{minor}", platforms)

    return make


Serve = Callable[[dict[str, "str | bytes | int"]], tuple[str, list[str]]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve contents by path over HTTP on loopback, also in ranges; an integer is a bare status.

    The fixture returns the address and the list of requests.
    """
    servers = ExitStack()

    def start(answers: dict[str, str | bytes | int]) -> tuple[str, list[str]]:
        requests: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                span = self.headers.get("Range", "").removeprefix("bytes=")
                requests.append(" ".join(filter(None, (self.command, self.path, span))))
                answer = answers.get(self.path, 404)
                body = answer.encode() if isinstance(answer, str) else b"" if isinstance(answer, int) else answer
                low, _, high = span.partition("-")
                first = int(low or max(0, len(body) - int(high))) if span else 0
                part = body[first : int(high) + 1] if low and high else body[first:]
                self.send_response(answer if isinstance(answer, int) else 206 if span else 200)
                if span:
                    self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(body)}")
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(part)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(part)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Keep the test's output clean."""

        return servers.enter_context(listening(Handler)), requests

    with servers:
        yield start
