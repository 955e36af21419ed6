"""Requests to servers that may be hostile: the answer's size, its time and its redirects have limits."""

from __future__ import annotations

import functools
import ssl
import threading
import time
import zlib
from collections.abc import Mapping
from concurrent import futures
from types import TracebackType
from typing import Any, cast

import httpx

from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.scrub import scrub_secrets

#: Bytes of a page, unpacked. The largest page of torch on any index has less than a tenth.
PAGE_LIMIT = 64 << 20
#: Seconds for a whole answer with its headers and redirects; a server that sends a byte now and then would hold the run
#: for ever.
LONGEST_ANSWER = 300.0

_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
# A page may be packed once, in the one way that is asked for.
_GZIP = ("gzip", "x-gzip")


class _Client(httpx.Client):
    """A client that stays open while a late request reads from it: the number of its socket could become another's."""

    is_late = False

    def close(self) -> None:
        if not self.is_late:
            super().close()

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if not self.is_late:
            super().__exit__(exc_type, exc_value, traceback)


def new_client(headers: Mapping[str, str] | None = None) -> httpx.Client:
    """Return a client that follows redirects to web addresses and uses the proxies of the environment."""
    return _Client(
        timeout=_TIMEOUT,
        follow_redirects=True,
        headers={"Accept-Encoding": "gzip", **(headers or {})},
        verify=_trusted(),
        event_hooks={"response": [_check_redirect]},
    )


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Return the trusted certificates; reading them takes longer than a request, so it is done once."""
    return httpx.create_ssl_context()


def _check_redirect(response: httpx.Response) -> None:
    """Refuse a redirect to anything but a web address, and from an encrypted address to a plain one."""
    if not response.has_redirect_location:
        return
    try:
        target = response.url.join(response.headers["Location"])
    except (httpx.InvalidURL, ValueError) as error:
        raise IndexUnreachable(f"{_shown(response.url)} redirects to no address: check the address") from error
    if target.scheme not in ("http", "https") or (response.url.scheme == "https" and target.scheme == "http"):
        raise IndexUnreachable(
            f"{_shown(response.url)} redirects to {_shown(target)}, which is not allowed: name that place itself, "
            "or correct the address"
        )


def request(
    client: httpx.Client, method: str, url: str, *, limit: int = PAGE_LIMIT, only: int | None = None, **options: Any
) -> httpx.Response:
    """Return the answer to a request, with a body of at most ``limit`` bytes after unpacking.

    With ``only``, the body of an answer with another status is not read.

    Raises:
        IndexUnreachable: the answer is larger, takes too long, is packed in another way, or redirects to another kind
            of place.
        httpx.HTTPError, httpx.InvalidURL: as the client's own ``request``.
    """
    until, answer = time.monotonic() + LONGEST_ANSWER, futures.Future[httpx.Response]()

    def ask() -> None:
        try:
            answer.set_result(_request(client, method, url, until, limit=limit, only=only, **options))
        except BaseException as error:
            answer.set_exception(error)

    # The client limits each read, and headers or a handshake are any number of reads.
    threading.Thread(target=ask, daemon=True, name="torchbisect-request").start()
    try:
        return answer.result(timeout=LONGEST_ANSWER + 1)
    except futures.TimeoutError:
        if isinstance(client, _Client):
            client.is_late = not answer.done()
        raise _too_slow(url) from None


def _request(
    client: httpx.Client, method: str, url: str, until: float, *, limit: int, only: int | None, **options: Any
) -> httpx.Response:
    with client.stream(method, url, **options) as response:
        if only not in (None, response.status_code):
            return httpx.Response(response.status_code, headers=response.headers.raw, request=response.request)
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in ("", "identity", *_GZIP):
            packing = repr(encoding[:40])
            raise IndexUnreachable(f"{_shown(response.url)} sends a page packed as {packing}: check the address")
        body, unpacker = bytearray(), zlib.decompressobj(31) if encoding in _GZIP else None
        for part in response.iter_raw():
            body += _unpacked(response, unpacker, part, limit + 1 - len(body)) if unpacker else part
            if len(body) > limit:
                raise IndexUnreachable(f"{_shown(response.url)} sends more than {limit >> 20} MiB: check the address")
            if time.monotonic() > until:
                raise _too_slow(str(response.url))
        if unpacker and method != "HEAD" and not unpacker.eof:
            raise httpx.DecodingError("the packed page is cut off", request=response.request)
    headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
    return httpx.Response(response.status_code, headers=headers, content=bytes(body), request=response.request)


def _unpacked(response: httpx.Response, unpacker: Any, part: bytes, most: int) -> bytes:
    try:
        return cast(bytes, unpacker.decompress(part, most))
    except zlib.error as error:
        raise httpx.DecodingError("the packed page is damaged", request=response.request) from error


def _too_slow(url: str) -> IndexUnreachable:
    return IndexUnreachable(f"{scrub_secrets(url[:300])} takes longer than {LONGEST_ANSWER:.0f} s: try later")


def _shown(url: httpx.URL) -> str:
    return scrub_secrets(str(url)[:300])
