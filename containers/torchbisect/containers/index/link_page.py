"""Links of an HTML page of an index (PEP 503), read in time that grows with the page's size and not faster.

Python's ``html.parser``, and with it pypi-simple's own reader, takes quadratic time for tags and comments that have no
end: 8,000 such links take 14 seconds. So the tags are found here, and pypi-simple reads what each link says.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin

from pypi_simple import DistributionPackage, Link, ProjectPage, UnsupportedRepoVersionError

#: The links of a page; the largest project of the public index has a tenth.
MOST_LINKS = 200_000
_LONGEST = 4000
_FILES = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz", ".egg", ".exe")
_NAME = re.compile(r"/?[A-Za-z][A-Za-z0-9]*(?=[\s/>])")
_ATTRIBUTE = re.compile(r"[\s/]*([^\s/>=\"'<]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s>\"']*))?")


class NoLinkPage(ValueError):
    """A text that is no page of links; the text of the error says why."""


@dataclass(frozen=True)
class _Tag:
    """A tag with its attributes, and the text between it and the tag before it."""

    name: str
    attributes: dict[str, str]
    text_before: str


def read_link_page(page: bytes, project: str, url: str, encoding: str | None = None) -> ProjectPage:
    """Return the files that a page links to; links that are no files of a package are left out.

    Raises:
        NoLinkPage: it has no link to a file, or too many links.
        UnsupportedRepoVersionError: it has a version of the format that is not known.
    """
    text = _decoded(page, encoding)
    if text.lower().count("<a") > MOST_LINKS:
        raise NoLinkPage(f"it has more than {MOST_LINKS} links")
    base, version, files = url, None, 0
    found: list[DistributionPackage] = []
    for link_text, tag in _links_and_heads(text):
        if tag.name == "base" and base == url:
            base = _joined(url, tag.attributes.get("href", "")) or url
        elif tag.name == "meta" and tag.attributes.get("name") == "pypi:repository-version":
            version = tag.attributes.get("content", "")
        elif tag.name == "a":
            files += any(part.lower().endswith(_FILES) for part in (link_text.strip(), _path(tag.attributes)))
            package = _package(link_text, tag.attributes, base, project)
            found += [package] if package else []
    if version is not None and not re.fullmatch(r"1\.[0-9]{1,6}", version):
        raise UnsupportedRepoVersionError("1.4", version[:40])
    if not files:
        raise NoLinkPage("it has no link to a file of a package")
    return ProjectPage(project, found, version, None, None, [], [])


def _decoded(page: bytes, encoding: str | None) -> str:
    try:
        return page.decode(encoding or "utf-8", "replace")
    except (LookupError, ValueError):
        return page.decode("utf-8", "replace")


def _links_and_heads(text: str) -> Iterator[tuple[str, _Tag]]:
    """Yield the tags ``base`` and ``meta``, and each link with its text; a link ends where the next one begins."""
    link: _Tag | None = None
    parts: list[str] = []
    for tag in _tags(text):
        if link is not None:
            parts.append(tag.text_before)
            if tag.name in ("a", "/a"):
                yield "".join(parts), link
                link = None
        if tag.name == "a":
            link, parts = tag, []
        elif tag.name in ("base", "meta"):
            yield "", tag
    if link is not None:
        yield "".join(parts), link


def _tags(text: str) -> Iterator[_Tag]:
    place = start = 0
    while (less := text.find("<", place)) >= 0:
        if text.startswith("<!--", less):
            end = text.find("-->", less + 4)
            if end < 0:
                return
            place = end + 3
            continue
        name = _NAME.match(text, less + 1)
        if name is None:
            place = less + 1
            continue
        before, place = text[start:less], name.end()
        attributes: dict[str, str] = {}
        while found := _ATTRIBUTE.match(text, place):
            place = found.end()
            value = (found.group(2) or "").strip("\"'")
            if len(attributes) < 50 and len(value) <= _LONGEST:
                attributes.setdefault(found.group(1).lower(), _unescaped(value))
        end = text.find(">", place)
        place = start = end + 1 if end >= 0 else len(text)
        yield _Tag(name.group().lower(), attributes, before)
    yield _Tag("", {}, text[start:])


def _path(attributes: dict[str, str]) -> str:
    return attributes.get("href", "").partition("#")[0].partition("?")[0]


def _package(text: str, attributes: dict[str, str], base: str, project: str) -> DistributionPackage | None:
    """Return the file that a link names, or ``None`` for another link."""
    address = _joined(base, attributes.get("href", ""))
    name = _unescaped(text[:_LONGEST]).strip()
    if not address or not name or len(name) > 500:
        return None
    try:
        package = DistributionPackage.from_link(Link(name, address, dict(attributes)), project)
    except ValueError:
        return None
    return package if package.version is not None else None


def _joined(base: str, link: str) -> str | None:
    """Return a link as an address, as pypi-simple does; ``None`` if it is none."""
    if not link or len(link) > _LONGEST:
        return None
    try:
        return urljoin(base, link)
    except ValueError:
        return None


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # the number of a character has thousands of digits
        return text
