"""Pages of a package index: the wheels of a project, and what the index says of each.

Pages are PEP 503 (HTML) or PEP 691 (JSON), over HTTP or from a folder on disk. PyTorch's own index has HTML only,
with absolute or relative links, and writes ``+`` as ``%2B`` in them; pypi-simple reads all of these.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import ssl
from pathlib import Path

import httpx
from packaging.utils import canonicalize_name
from pypi_simple import (
    ACCEPT_ANY,
    DistributionPackage,
    Link,
    ProjectPage,
    UnsupportedContentTypeError,
    UnsupportedRepoVersionError,
)

from torchbisect.containers.index.indexes import Indexes, file_path
from torchbisect.containers.index.link_page import MOST_LINKS, NoLinkPage, read_link_page
from torchbisect.core import web
from torchbisect.core.decode import read_object
from torchbisect.core.errors import IndexUnreachable, InputError
from torchbisect.core.regular_file import read_regular_file
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

JSON = "application/vnd.pypi.simple.v1+json"


def project_page(
    url: str,
    project: str,
    *,
    notify: Notify = silent,
    retry: RetryPolicy = DEFAULT_RETRY,
    client: httpx.Client | None = None,
) -> ProjectPage | None:
    """Return an index's page of one project, or ``None`` if the index doesn't have the project.

    ``url`` is the index without the project: ``https://host/simple``, ``file:///folder/simple``. The name of the
    project may have any spelling. Raise ``IndexUnreachable`` if the index is down, refuses, or sends no page.
    """
    name = canonicalize_name(project)
    page_url = f"{url.rstrip('/')}/{name}/"
    return _page(page_url, name, f"the index {scrub_secrets(url)}", notify, retry, client)


def packages(
    indexes: Indexes,
    project: str,
    *,
    notify: Notify = silent,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> list[DistributionPackage]:
    """Return all files of a project in all these places, as an installer would see them; the main index's come first.

    Raise ``IndexUnreachable`` if a place gives no usable answer, since the list would then be incomplete.
    """
    found: list[DistributionPackage] = []
    with _new_client() as client:
        for url in indexes.urls:
            page = project_page(url, project, notify=notify, retry=retry, client=client)
            found += page.packages if page else []
        for place in indexes.find_links:
            found += _links(place, project, notify, retry, client)
    return found


def _new_client() -> httpx.Client:
    return web.new_client({"Accept": ACCEPT_ANY})


def _links(
    place: str, project: str, notify: Notify, retry: RetryPolicy, client: httpx.Client
) -> list[DistributionPackage]:
    """Return the files of one ``--find-links`` place: a folder of wheels, or a page of links."""
    name = canonicalize_name(project)
    folder = file_path(place) if place.startswith("file://") else Path(place).expanduser()
    if "://" in place and not place.startswith("file://"):
        page = _page(place, name, f"the page of links {scrub_secrets(place)}", notify, retry, client)
        files = page.packages if page else []
    elif os.path.isdir(folder):
        links = [Link(path.name, path.absolute().as_uri(), {}) for path in sorted(folder.iterdir())]
        files = [DistributionPackage.from_link(link, name) for link in links if link.text.endswith((".whl", ".tar.gz"))]
    else:
        page = _read_page(folder, name)
        files = page.packages if page else []
    return [file for file in files if canonicalize_name(file.project or "") == name]


def _page(
    url: str, name: str, what: str, notify: Notify, retry: RetryPolicy, client: httpx.Client | None
) -> ProjectPage | None:
    if url.startswith("file://"):
        return _read_page(file_path(url), name)

    with contextlib.nullcontext(client) if client else _new_client() as asker:
        page = retry_transient(lambda: _fetch(asker, url, name, what), what, notify=notify, retry=retry)
    return _without_local_files(page) if page else None


def _without_local_files(page: ProjectPage) -> ProjectPage:
    """Return a page of another machine without links to this machine's files: they could name any file here."""
    packages = [package for package in page.packages if package.url.lower().startswith(("https://", "http://"))]
    return dataclasses.replace(page, packages=packages)


def _fetch(client: httpx.Client, url: str, name: str, what: str) -> ProjectPage | None:
    """Ask once. Raise ``Transient`` if another try may succeed, and ``IndexUnreachable`` if it can't."""
    try:
        response = web.request(client, "GET", url)
    except httpx.ConnectError as error:
        if isinstance(error.__cause__, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise IndexUnreachable(
                f"{what} has a certificate that isn't trusted here ({error}): set SSL_CERT_FILE to those to trust"
            ) from error
        raise Transient(scrub_secrets(str(error)) or "no connection") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise IndexUnreachable(f"{what} isn't an address that can be asked ({error}): correct it") from error
    except httpx.TimeoutException as error:
        raise Transient("no answer in time") from error
    except httpx.HTTPError as error:
        raise Transient(scrub_secrets(str(error)) or type(error).__name__) from error
    if response.status_code in (404, 410):
        return None
    raise_for_transient_status(response.status_code)
    if response.status_code in (401, 403):
        raise IndexUnreachable(
            f"{what} refuses access (HTTP status {response.status_code}): check the name and password in its address"
        )
    if response.status_code >= 400:
        raise IndexUnreachable(f"{what} answered with HTTP status {response.status_code}: check its address")
    return _parse(response, name, what)


def _parse(response: httpx.Response, name: str, what: str) -> ProjectPage:
    kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    try:
        if kind == JSON:
            return _json_page(response)
        if kind in ("text/html", "application/vnd.pypi.simple.v1+html"):
            return read_link_page(response.content, name, str(response.url), response.charset_encoding)
        raise UnsupportedContentTypeError(str(response.url), kind)
    except (UnsupportedRepoVersionError, UnsupportedContentTypeError) as error:
        raise IndexUnreachable(f"{what} does not send a page of packages ({scrub_secrets(str(error))})") from error
    except NoLinkPage as error:
        raise IndexUnreachable(f"{what} does not send a page of packages: {error}; check its address") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Transient(f"a page that can't be read: {type(error).__name__}") from error


def _json_page(response: httpx.Response) -> ProjectPage:
    page = ProjectPage.from_json_data(read_object(response.content), str(response.url))
    if len(page.packages) > MOST_LINKS:
        raise NoLinkPage(f"it has more than {MOST_LINKS} files")
    return page


def _read_page(path: Path, name: str) -> ProjectPage | None:
    """Read a page on this disk; a folder stands for the ``index.html`` in it."""
    page = path / "index.html" if os.path.isdir(path) else path
    try:
        return read_link_page(read_regular_file(page, web.PAGE_LIMIT), name, page.absolute().as_uri())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (NoLinkPage, UnsupportedRepoVersionError, InputError) as error:
        raise IndexUnreachable(f"{page} is no page of packages: {error}; check the address of the index") from error
    except OSError as error:
        raise IndexUnreachable(f"{page} can't be read ({error.strerror}): check the address of the index") from error
