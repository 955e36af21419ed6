"""Indexes that send too much, for too long, something else, or elsewhere."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import JSON, packages, project_page
from torchbisect.core import web
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import RetryPolicy

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


def test_a_server_that_sends_a_byte_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "LONGEST_ANSWER", 1.0)
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listening.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        for _ in range(300):
            try:
                connection.sendall(b"x")
            except OSError:
                return
            time.sleep(0.05)

    threading.Thread(target=drip, daemon=True).start()
    started = time.monotonic()
    with pytest.raises(IndexUnreachable, match="takes longer"):
        project_page(f"http://127.0.0.1:{listening.getsockname()[1]}", "torch", retry=SHORT)
    assert time.monotonic() - started < 10
    listening.close()
