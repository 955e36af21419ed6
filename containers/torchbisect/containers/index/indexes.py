"""Where packages come from: what the user typed, else what uv and pip are set to, else the public index.

The order and the meaning are pip's: one index that stands for the rest, more of them beside it, and folders or pages
of links. Whoever has set up a mirror for pip or uv gets that mirror here without saying it again.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import platformdirs
import pypi_simple

if sys.version_info >= (3, 11):
    from tomllib import loads as read_toml
else:

    def read_toml(text: str) -> dict[str, Any]:
        """Python 3.10 has nothing that reads TOML: uv's own file says nothing there, its variables still do."""
        return {}


_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)


def redact_url(url: str) -> str:
    """An address as it may be printed: the name and password in it replaced by ``****``."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "****"
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc="****@" + parts.netloc.rpartition("@")[2]))


def redact_urls(text: str) -> str:
    """A message of another program with what is secret in its addresses replaced."""
    return _ADDRESS.sub(lambda found: redact_url(found.group()), text)


@dataclass(frozen=True)
class Indexes:
    """The places where wheels are looked for.

    Attributes:
        index_url: the PEP 503 or PEP 691 index, ``http(s)://`` or ``file://``.
        extra_index_urls: more of the same; the best version of all of them is taken, as pip does.
        find_links: folders of wheels or pages of links.
    """

    index_url: str = pypi_simple.PYPI_SIMPLE_ENDPOINT
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()

    @classmethod
    def from_configuration(
        cls,
        index_url: str | None = None,
        extra: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> Indexes:
        """What the user typed, else what uv is set to, else what pip is set to, else the public index.

        As with pip, a typed index doesn't silence the extra indexes and links of the configuration: they are where a
        nightly's requirements may have to come from.

        Args:
            index_url: what ``--index-url`` says.
            extra: what each ``--extra-index-url`` says; stands beside the configured ones.
            environ: the variables to read; the process's own by default.
            python: the interpreter whose pip is asked for its configuration.
        """
        variables = os.environ if environ is None else environ
        sources = [_uv_variables(variables), _uv_files(variables), _pip_settings(variables, python)]
        found = next((source.index_url for source in sources if source.index_url), None)
        extras = next((source.extra for source in sources if source.extra), ())
        links = next((source.links for source in sources if source.links), ())
        chosen = index_url or found or pypi_simple.PYPI_SIMPLE_ENDPOINT
        return cls(_tidy(chosen), tuple(dict.fromkeys(map(_tidy, (*extra, *extras)))), tuple(dict.fromkeys(links)))

    @property
    def urls(self) -> tuple[str, ...]:
        """All indexes, the chief one first."""
        return (self.index_url, *self.extra_index_urls)

    def uv_variables(self) -> dict[str, str]:
        """What tells uv of these places: variables and not options, for every user can read a process's options."""
        variables = {"UV_DEFAULT_INDEX": self.index_url, "UV_INDEX_STRATEGY": "unsafe-best-match"}
        if self.extra_index_urls:
            variables["UV_INDEX"] = " ".join(self.extra_index_urls)
        if self.find_links:
            variables["UV_FIND_LINKS"] = ",".join(self.find_links)
        return variables

    def __str__(self) -> str:
        """The places as they may be printed."""
        return ", ".join(redact_url(place) for place in (*self.urls, *self.find_links))


@dataclass(frozen=True)
class _Source:
    """What one configuration says; empty where it says nothing."""

    index_url: str | None = None
    extra: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def _tidy(url: str) -> str:
    """An index's address, or the folder of one on this disk as an address."""
    return url if "://" in url else Path(url).expanduser().absolute().as_uri()


def _unnamed(entry: str) -> str:
    """uv lets an index have a name in front: ``pytorch=https://...``."""
    name, equals, url = entry.partition("=")
    return url if equals and re.fullmatch(r"[A-Za-z0-9_.-]+", name) else entry


def _uv_variables(environ: Mapping[str, str]) -> _Source:
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    extra = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    links = [link.strip() for link in environ.get("UV_FIND_LINKS", "").split(",") if link.strip()]
    return _Source(_unnamed(default) if default else None, tuple(map(_unnamed, extra)), tuple(links))


def _uv_files(environ: Mapping[str, str]) -> _Source:
    """uv's settings for this user, or else for this machine; a project's are left alone: it isn't what is installed."""
    named = environ.get("UV_CONFIG_FILE")
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", os.path.expanduser("~")), ".config")
    places = [Path(named)] if named else [Path(home) / "uv/uv.toml", *_machine_files()]
    for place in places:
        try:
            source = _read_uv(read_toml(place.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue  # uv itself will say what is wrong with its file
        if source != _Source():
            return source
    return _Source()


def _machine_files() -> list[Path]:
    folders = platformdirs.site_config_dir("uv", multipath=True).split(os.pathsep)
    return [Path(folder) / "uv.toml" for folder in dict.fromkeys([*folders, "/etc/uv"])]


def _read_uv(settings: Mapping[str, Any]) -> _Source:
    """The three ways in which uv's file names indexes: at the top, under ``[pip]``, and as ``[[index]]`` tables."""
    default: str | None = None
    extra: list[str] = []
    links: list[str] = []
    pip = settings.get("pip")
    for table in (settings, pip if isinstance(pip, dict) else {}):
        if isinstance(table.get("index-url"), str):
            default = default or str(table["index-url"])
        extra += [str(url) for url in table.get("extra-index-url") or ()]
        links += [str(link) for link in table.get("find-links") or ()]
    for table in settings.get("index") or ():
        if isinstance(table, dict) and isinstance(table.get("url"), str) and not table.get("explicit"):
            if table.get("default"):
                default = default or table["url"]
            else:
                extra.append(table["url"])
    return _Source(default, tuple(extra), tuple(links))


def _pip_settings(environ: Mapping[str, str], python: str) -> _Source:
    """pip's variables, and its files by way of ``pip config list``, which knows where they are on every system."""
    settings = parse_pip_config(_pip_config(environ, python))
    for option in ("index-url", "extra-index-url", "find-links"):
        value = environ.get("PIP_" + option.upper().replace("-", "_"))
        if value and value.strip():
            settings[option] = value
    # pip reads several values from one variable or line by splitting at white space.
    return _Source(
        (settings.get("index-url") or "").strip() or None,
        tuple(settings.get("extra-index-url", "").split()),
        tuple(settings.get("find-links", "").split()),
    )


def _pip_config(environ: Mapping[str, str], python: str) -> str:
    command = [python, "-m", "pip", "config", "list", "--disable-pip-version-check"]
    try:
        done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def parse_pip_config(listing: str) -> dict[str, str]:
    """The options in what ``pip config list`` prints, one ``section.option='value'`` a line.

    pip prints values as Python's ``repr`` does. ``install`` wins over ``global``, and a variable over both, as in pip.
    A line that isn't of this form is passed over.
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
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, str) and rank[section] >= found.get(option, (-1, ""))[0]:
            found[option] = rank[section], value
    return {option: value for option, (_, value) in found.items()}
