"""Settings of package indexes: the command line's, else uv's, else pip's, else the public index.

Order and meaning are pip's: one main index, extra indexes beside it, and folders or pages of links. A mirror that is
set up for pip or uv is used here without further options.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import platformdirs

from torchbisect.containers.process.run_command import output_of
from torchbisect.containers.python.module_command import module_command
from torchbisect.core.errors import InputError
from torchbisect.core.regular_file import read_regular_file
from torchbisect.core.scrub import scrub_secrets
from torchbisect.core.toml import read_toml

_LARGEST_FILE = 1_000_000


@dataclass(frozen=True)
class Indexes:
    """The places where wheels are looked for.

    Attributes:
        index_url: the PEP 503 or PEP 691 index, ``http(s)://`` or ``file://``; ``None`` for the public one.
        extra_index_urls: more indexes; the best version of all of them is taken, as pip does.
        find_links: folders of wheels or pages of links.
        allow_sdists: build packages that have no wheel from source, which runs their code at the install.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    allow_sdists: bool = False

    @classmethod
    def from_configuration(
        cls,
        index_url: str | None = None,
        extra: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> Indexes:
        """Return the places of the command line, else of uv's settings, else of pip's, else the public index.

        As with pip, ``--index-url`` does not turn off the configured extra indexes and links: a nightly's requirements
        may have to come from there. ``extra``, the values of ``--extra-index-url``, are used beside the configured
        ones. ``environ`` are the variables to read, by default the process's own; ``python``'s pip is asked for its
        settings.
        """
        variables = os.environ if environ is None else environ
        sources = [_uv_variables(variables), _uv_files(variables), _pip_settings(variables, python)]
        found = next((source.index_url for source in sources if source.index_url), None)
        extras = next((source.extra for source in sources if source.extra), ())
        links = next((source.links for source in sources if source.links), ())
        main = index_url or found
        beside = tuple(dict.fromkeys(map(_as_url, (*extra, *extras))))
        return cls(_as_url(main) if main else None, beside, tuple(dict.fromkeys(links)))

    @property
    def urls(self) -> tuple[str, ...]:
        """All indexes, the main one first."""
        return (self.index_url or _public_index(), *self.extra_index_urls)

    @property
    def named(self) -> tuple[str, ...]:
        """All indexes except the public one where nobody names it."""
        return self.urls if self.index_url else self.extra_index_urls

    @property
    def main_is_public(self) -> bool:
        """True if the main index is the public one."""
        return self.index_url is None or self.index_url.rstrip("/") == _public_index().rstrip("/")

    def uv_variables(self) -> dict[str, str]:
        """Return the variables that give uv these places; its options would be visible to other users."""
        variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
        if self.index_url:
            variables["UV_DEFAULT_INDEX"] = self.index_url
        if self.extra_index_urls:
            variables["UV_INDEX"] = " ".join(self.extra_index_urls)
        if self.find_links:
            variables["UV_FIND_LINKS"] = ",".join(self.find_links)
        return variables

    def __str__(self) -> str:
        """Return the places for a message, without secrets."""
        return ", ".join(scrub_secrets(place) for place in (*self.urls, *self.find_links))


@dataclass(frozen=True)
class _IndexSettings:
    """Settings from one source; empty where the source has none."""

    index_url: str | None = None
    extra: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def _public_index() -> str:
    # Imported late: it takes a fifth of the time until a command begins, and few need the address.
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return PYPI_SIMPLE_ENDPOINT


def _as_url(url: str) -> str:
    """Return an index as an address; a path on this disk becomes a ``file://`` address."""
    return url if "://" in url else Path(url).expanduser().absolute().as_uri()


def file_path(url: str) -> Path:
    """Return the path in a ``file://`` address."""
    return Path(url2pathname(urlsplit(url).path))


def _without_name(entry: str) -> str:
    """Return an index without the name that uv allows before it: ``pytorch=https://...``."""
    name, equals, url = entry.partition("=")
    return url if equals and re.fullmatch(r"[A-Za-z0-9_.-]+", name) else entry


def _uv_variables(environ: Mapping[str, str]) -> _IndexSettings:
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    extra = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    links = [link.strip() for link in environ.get("UV_FIND_LINKS", "").split(",") if link.strip()]
    return _IndexSettings(_without_name(default) if default else None, tuple(map(_without_name, extra)), tuple(links))


def _uv_files(environ: Mapping[str, str]) -> _IndexSettings:
    """Read uv's settings of this user, else of this machine; a project's settings do not count here."""
    named = environ.get("UV_CONFIG_FILE")
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", os.path.expanduser("~")), ".config")
    places = [Path(named)] if named else [Path(home) / "uv/uv.toml", *_machine_files()]
    for place in places:
        try:
            source = _read_uv(read_toml(read_regular_file(place, _LARGEST_FILE).decode("utf-8")))
        except (OSError, ValueError, InputError):
            continue  # uv itself reports a broken file
        if source != _IndexSettings():
            return source
    return _IndexSettings()


def _machine_files() -> list[Path]:
    folders = platformdirs.site_config_dir("uv", multipath=True).split(os.pathsep)
    return [Path(folder) / "uv.toml" for folder in dict.fromkeys([*folders, "/etc/uv"])]


def _read_uv(settings: Mapping[str, Any]) -> _IndexSettings:
    """Read the three forms in which uv's file names indexes: at the top, in ``[pip]``, in ``[[index]]``."""
    default: str | None = None
    extra: list[str] = []
    links: list[str] = []
    pip = settings.get("pip")
    for table in (settings, pip if isinstance(pip, dict) else {}):
        if isinstance(table.get("index-url"), str):
            default = default or str(table["index-url"])
        extra += _texts(table.get("extra-index-url"))
        links += _texts(table.get("find-links"))
    tables = settings.get("index")
    for table in tables if isinstance(tables, list) else ():
        if isinstance(table, dict) and isinstance(table.get("url"), str) and not table.get("explicit"):
            if table.get("default"):
                default = default or table["url"]
            else:
                extra.append(table["url"])
    return _IndexSettings(default, tuple(extra), tuple(links))


def _texts(value: Any) -> list[str]:
    """Return the texts of a list; uv itself reports a value of another type."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _pip_settings(environ: Mapping[str, str], python: str) -> _IndexSettings:
    """Read pip's variables, and its files through ``pip config list``, which finds them on every system."""
    command = module_command(python, "pip", "config", "list", "--disable-pip-version-check")
    settings = parse_pip_config(output_of(command, 30, dict(environ)))
    for option in ("index-url", "extra-index-url", "find-links"):
        value = environ.get("PIP_" + option.upper().replace("-", "_"))
        if value and value.strip():
            settings[option] = value
    # pip reads several values from one variable or line by splitting at white space.
    return _IndexSettings(
        (settings.get("index-url") or "").strip() or None,
        tuple(settings.get("extra-index-url", "").split()),
        tuple(settings.get("find-links", "").split()),
    )


def parse_pip_config(listing: str) -> dict[str, str]:
    """Return the options in the output of ``pip config list``, which has one ``section.option='value'`` a line.

    pip prints values with ``repr``. ``install`` wins over ``global``, and a variable over both, as in pip. Lines of
    another form are ignored.
    """
    rank = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        key, equals, written = line.partition("=")
        section, dot, option = key.strip().rpartition(".")
        if not (equals and dot and section in rank):
            continue
        try:
            value = ast.literal_eval(written.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        if isinstance(value, str) and rank[section] >= found.get(option, (-1, ""))[0]:
            found[option] = rank[section], value
    return {option: value for option, (_, value) in found.items()}
