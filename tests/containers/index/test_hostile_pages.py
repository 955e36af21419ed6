"""Indexes that send too much, for too long, something else, or elsewhere."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchbisect.bisect.sources import patch
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import JSON, packages, project_page
from torchbisect.core import web
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import RetryPolicy
from torchbisect.triage.github import GitHub, Reference

pytestmark = pytest.mark.long

SHORT = RetryPolicy(first_wait=0.01, longest_wait=0.02, total=0.1)
WHEEL = "torch-2.8.0-cp311-cp311-linux_x86_64.whl"
LINK = f'<a href="{WHEEL}">{WHEEL}</a>\n'

Serve = Callable[[Callable[[str], Any]], Any]

_MANY = 150_000
GARBAGE = {
    "empty": "",
    "error-page": "<html><head><title>Welcome</title></head><body>Service is down</body></html>",
    "error-page-with-links": '<html><a href="/">home</a> <a href="/help">help</a></html>',
    "login": '<form action="/login"><a href="https://sso.example/whl/login">log in</a></form>',
    "text": "no such page",
    "zeros": "\0" * 100_000,
    "less-than": "<" * 2_000_000,
    "unclosed-links": '<a href="x">' * _MANY,
    "unclosed-tags": "<a" * _MANY,
    "unclosed-quotes": '<a href="' * _MANY,
    "unclosed-comments": "<!--" * 1_000_000,
    "unclosed-cdata": "<![CDATA[" * 1_000_000,
    "unclosed-declarations": "<!DOCTYPE " * 1_000_000,
    "spaces-in-a-tag": "<a " + " " * 3_000_000,
    "spaces-and-equals": "<a x" + " =" * 1_000_000,
    "attributes": "<a " + "x=1 " * 1_000_000 + ">",
    "ampersands": '<a href="' + "&" * 3_000_000 + '">x</a>',
    "digits": '<a href="&#' + "9" * 3000 + ';">&#' + "9" * 100_000 + ";</a>",
    "too-many-links": LINK * 300_000,
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
def test_a_page_that_is_none(serve: Serve, answer: Any, tmp_path: Path, text: str) -> None:
    server = serve(lambda path: answer(body=text.encode()))
    started = time.monotonic()
    with pytest.raises(IndexUnreachable, match=server.url):
        project_page(f"{server.url}/simple", "torch", retry=SHORT)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/index.html").write_text(text)
    with pytest.raises(IndexUnreachable, match=r"torch/index.html"):
        project_page(tmp_path.as_uri(), "torch", retry=SHORT)
    with pytest.raises(IndexUnreachable):
        packages(Indexes(tmp_path.as_uri(), (), (f"{server.url}/links",)), "torch", retry=SHORT)
    assert time.monotonic() - started < 20


FILE = {"filename": WHEEL, "url": WHEEL, "hashes": {}}
TOLD = {"meta": {"api-version": "1.0"}, "name": "torch", "files": [FILE]}
GARBAGE_JSON = {
    "list": [],
    "number": 3,
    "empty": {},
    "no-files": {"meta": {"api-version": "1.0"}, "name": "torch"},
    "files-text": {**TOLD, "files": "x"},
    "file-text": {**TOLD, "files": ["x"]},
    "file-empty": {**TOLD, "files": [{}]},
    "hashes-list": {**TOLD, "files": [{**FILE, "hashes": []}]},
    "name-number": {**TOLD, "files": [{**FILE, "filename": 3}]},
    "url-null": {**TOLD, "files": [{**FILE, "url": None}]},
    "newer": {**TOLD, "meta": {"api-version": "9.0"}},
    "error": {"message": "not found"},
}


@pytest.mark.parametrize("value", GARBAGE_JSON.values(), ids=GARBAGE_JSON)
def test_json_that_is_no_page(serve: Serve, answer: Any, value: object) -> None:
    server = serve(lambda path: answer(body=json.dumps(value).encode(), kind=JSON))
    with pytest.raises(IndexUnreachable, match=server.url):
        project_page(server.url, "torch", retry=SHORT)


@pytest.mark.parametrize(
    "body", [b"[" * 10**6, b"{" * 10**6, b'{"files": [' + b"{}," * 2 * 10**6, b"\xff", b"9" * 10**6, b'{"a":1,"a":2}']
)
def test_a_text_that_is_no_json(serve: Serve, answer: Any, body: bytes) -> None:
    server = serve(lambda path: answer(body=body, kind=JSON))
    started = time.monotonic()
    with pytest.raises(IndexUnreachable, match=server.url):
        project_page(server.url, "torch", retry=RetryPolicy(0.01, 0.02, 0.0))
    assert time.monotonic() - started < 10


def test_a_large_page_is_read_in_linear_time(serve: Serve, answer: Any) -> None:
    names = [f"torch-2.{number}.0-cp311-cp311-linux_x86_64.whl" for number in range(20_000)]
    text = "".join(f'<a href="{name}#sha256=ab" data-requires-python="&gt;=3.8">{name}</a><br/>\n' for name in names)
    server = serve(lambda path: answer(body=text.encode()))
    started = time.monotonic()
    page = project_page(server.url, "torch")
    assert page is not None
    assert [package.filename for package in page.packages] == names
    assert page.packages[0].requires_python == ">=3.8"
    assert page.packages[0].digests == {"sha256": "ab"}
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "text",
    [
        f"<A HREF='{WHEEL}'>{WHEEL}</A>",
        f"<a  rel=x\n href={WHEEL} >\n {WHEEL}\n</a>",
        f'<a href="{WHEEL}" data-requires-python=">=3.8">{WHEEL}</a>',
        f"<!-- <a href='x.whl'>x</a> --><a href={WHEEL}><b>{WHEEL}</b></a>",
        f'don\'t <p class="x">"<a href="{WHEEL}">{WHEEL}',
        f'1 < 2 <a href="{WHEEL}">{WHEEL}</a><a href="other">other</a>',
        f'<base href="https://other.example/x/"><a href="{WHEEL}">{WHEEL}</a>',
        f'<meta name="pypi:repository-version" content="1.1"><a href="{WHEEL}">{WHEEL}</a>',
        f'<a href="http://[::1">{WHEEL}</a><a href="{WHEEL}" data-yanked>{WHEEL}</a>',
    ],
)
def test_forms_of_links(serve: Serve, answer: Any, text: str) -> None:
    server = serve(lambda path: answer(body=text.encode()))
    page = project_page(server.url, "torch")
    assert page is not None
    assert [package.filename for package in page.packages] == [WHEEL]
    place = "https://other.example/x" if "<base" in text else f"{server.url}/torch"
    assert page.packages[0].url == f"{place}/{WHEEL}"
    assert page.packages[0].is_yanked is ("yanked" in text)


def _deflated(data: bytes) -> bytes:
    return zlib.compress(data)


_MEMORY = """\
import resource, sys
from torchbisect.containers.index.pages import project_page
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import RetryPolicy
from torchbisect.triage.github import GitHub, Reference
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    project_page(sys.argv[1], "torch", retry=RetryPolicy(0.01, 0.02, 0.1))
except IndexUnreachable as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip", "br", "zstd", "", "gzip-html"])
def test_a_page_that_unpacks_to_gigabytes(serve: Serve, answer: Any, encoding: str) -> None:
    zeros = b" " * (1 << 20)
    packed = gzip.compress(zeros * 400) if "gzip" in encoding else _deflated(zeros * 400)
    if encoding == "gzip, gzip":
        packed = gzip.compress(packed)
    name = encoding.removesuffix("-html")
    body, headers = (zeros * 100, ()) if not encoding else (packed, (("Content-Encoding", name),))
    server = serve(lambda path: answer(body=body, headers=headers, kind="text/html" if "html" in encoding else JSON))
    done = subprocess.run([sys.executable, "-c", _MEMORY, server.url], capture_output=True, text=True, check=True)
    used, said = done.stdout.split(" ", 1)
    assert int(used) < 300_000  # kilobytes
    assert server.url in said


@pytest.mark.parametrize(
    "place", ["file:///etc/passwd", "ftp://host/x", "data:text/html,x", "gopher://x", "javascript:x"]
)
def test_a_redirect_to_another_kind_of_place(serve: Serve, answer: Any, place: str) -> None:
    server = serve(lambda path: answer(302, headers=(("Location", place),)))
    with pytest.raises(IndexUnreachable, match="redirects to") as caught:
        project_page(server.url, "torch", retry=SHORT)
    assert server.url in str(caught.value)
    assert len(server.asked) == 1


def test_a_redirect_from_an_encrypted_place_to_a_plain_one() -> None:
    """The certificate of a loopback server is not trusted, so the check is asked itself."""
    import httpx

    secure = httpx.Request("GET", "https://index.example/simple/torch/")
    plain = httpx.Response(302, headers={"Location": "http://index.example/"}, request=secure)
    with pytest.raises(IndexUnreachable, match="not allowed"):
        web._check_redirect(plain)
    web._check_redirect(httpx.Response(302, headers={"Location": "/other"}, request=secure))


@pytest.mark.parametrize("location", ["http://[", "//[::1", "http://x:99999999/", "http://\x7f"])
def test_a_redirect_to_no_address(serve: Serve, answer: Any, location: str) -> None:
    server = serve(lambda path: answer(302, headers=(("Location", location),)))
    with pytest.raises(IndexUnreachable):
        project_page(server.url, "torch", retry=SHORT)


def test_redirects_without_end(serve: Serve, answer: Any) -> None:
    server = serve(lambda path: answer(302, headers=(("Location", path + "x"),)))
    with pytest.raises(IndexUnreachable):
        project_page(server.url, "torch", retry=RetryPolicy(0.01, 0.02, 0.0))


DRIPS = {
    "body": (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x"),
    "status-line": (b"", b"HTTP/1.1 200 " + b"O" * 10_000),
    "header": (b"HTTP/1.1 200 OK\r\nX-A: ", b"a"),
    "many-headers": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
    "interim-answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "size-of-a-chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
    "trailer": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ", b"x"),
}
ASK = {
    "index": lambda url: project_page(url, "torch", retry=SHORT),
    "github": lambda url: GitHub(base=url).issue(Reference("pytorch", "pytorch", 1)),
    "patch": lambda url: patch._fetch(url, "1"),
}


@contextlib.contextmanager
def dripping(first: bytes, then: bytes) -> Iterator[str]:
    """Serve some bytes at once, and then one of ``then``, over and over, each twentieth of a second."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(4096)
            connection.sendall(first)
            for at in itertools.cycle(range(len(then))):
                connection.sendall(then[at : at + 1])
                if ended.wait(0.05):
                    return

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    ended.set()
    listening.close()


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize(("first", "then"), DRIPS.values(), ids=DRIPS)
def test_a_server_that_sends_a_byte_now_and_then(
    monkeypatch: pytest.MonkeyPatch, first: bytes, then: bytes, ask: Callable[[str], Any]
) -> None:
    monkeypatch.setattr(web, "LONGEST_ANSWER", 0.5)
    started = time.monotonic()
    with dripping(first, then) as url, pytest.raises(IndexUnreachable, match="takes longer"):
        ask(url)
    assert time.monotonic() - started < 8


def sockets() -> set[str]:
    """Return the open sockets of this process."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return {one for one in found if one.startswith("socket:")}


def test_the_socket_of_a_late_request_stays_open_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that were closed under a read would free the number of its socket for the next file."""
    monkeypatch.setattr(web, "LONGEST_ANSWER", 0.3)
    with dripping(b"HTTP/1.1 200 OK\r\nX-A: ", b"a") as url:
        before = sockets()
        with pytest.raises(IndexUnreachable), web.new_client({}) as client:
            web.request(client, "GET", url)
        assert len(sockets() - before) >= 1
