"""Check the names in options before anything is started: empty ones, signs that no name has, and wrong forms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from torchbisect.bisect.sources.selection import parse_build
from torchbisect.core.errors import InputError
from torchbisect.core.printable import one_line
from torchbisect.core.scrub import scrub_secrets

_LONGEST_NAME = 256
_LONGEST_PATH = 4096
_LONGEST_PART = 255  # of a path, in every file system of Linux

_VARIANT = re.compile(r"(?:cpu|xpu|cu[0-9]{2,4}|rocm[0-9]{1,2}(?:\.[0-9]{1,3}){0,2})(?:[._+-][A-Za-z0-9._-]{1,40})?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*(?:@[A-Za-z0-9]+:[0-9a-fA-F]+)?")
_RUNTIME = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._/-]*")
_ADDRESS = re.compile(r"(?:https?|ssh|git|file|git\+https|git\+ssh)://[^\s]+|[\w.-]+@[\w.-]+:[^\s]+")
_INDEX = re.compile(r"(?:https?://[^\s/]+|file:///)[^\s]*")

#: An example of each option's value.
_EXAMPLES = {
    "torch": "2.8.0",
    "good": "2.7.1",
    "bad": "2.8.0",
    "against": "2.7.1",
    "python": "python3.12",
    "image": "debian:bookworm-slim",
    "runtime": "runsc",
    "variant": "cpu",
    "git": "https://github.com/pytorch/pytorch",
    "index-url": "https://download.pytorch.org/whl/nightly/cpu",
    "extra-index-url": "https://download.pytorch.org/whl/cpu",
    "files": "data.npz",
    "measure": "time",
    "out": "torchbisect-out",
    "cache-dir": "~/.cache/torchbisect",
    "build-cmd": "'sh build.sh'",
}
#: Options whose value may have newlines.
_PROGRAMS = ("build-cmd",)
_PATHS = ("out", "cache-dir", "files", "python")


def check_names(options: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for a name that is empty, has signs that can't be seen, or can't be what it should be.

    ``options`` are the values of ``Options`` by their names.
    """
    for option, value in _named(options):
        _check_text(option, value)
    for option, pattern, forms in (
        ("variant", _VARIANT, "cpu, cu126, rocm6.4 or xpu"),
        ("image", _IMAGE, "a name and a tag, such as debian:bookworm-slim"),
        ("runtime", _RUNTIME, "the engine's name of it, such as runsc"),
    ):
        value = options[option]
        if value is not None and not pattern.fullmatch(value):
            raise InputError(f"--{option} {_shown(value)}: there can be no such {option}; write {forms}")
    _check_builds(options)
    if (
        options["git"] is not None
        and not _ADDRESS.fullmatch(options["git"])
        and not os.path.isdir(_path(options["git"]))
    ):
        raise InputError(
            f"--git {_shown(options['git'])}: neither a folder nor an address; name a clone of PyTorch, or write "
            f"{_EXAMPLES['git']}"
        )
    for option, urls in (("index-url", (options["index_url"],)), ("extra-index-url", options["extra_index_urls"])):
        for url in urls:
            if url is not None and not _is_address(url) and not os.path.isdir(_path(url)):
                raise InputError(
                    f"--{option} {_shown(url)}: this is neither an address nor a folder; write {_EXAMPLES[option]}, say"
                )


def _is_address(url: str) -> bool:
    try:
        return bool(_INDEX.fullmatch(url)) and urlsplit(url).port != 0
    except ValueError:  # the port is no number, or the brackets of an IPv6 address are not closed
        return False


def _named(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the options that were given and name something, with their values."""
    for option in _EXAMPLES:
        name = "extra_index_urls" if option == "extra-index-url" else option.replace("-", "_")
        value = options[name]
        if value is not None:
            yield from ((option, str(one)) for one in (value if isinstance(value, tuple) else (value,)))


def _check_text(option: str, value: str) -> None:
    if not value.strip():
        raise InputError(f"--{option}: the value is empty; write --{option} {_EXAMPLES[option]}, say, or leave it out")
    allowed = value.replace("\n", " ") if option in _PROGRAMS else value
    if (not allowed.isprintable() and option not in _PATHS) or "\0" in value:
        raise InputError(f"--{option} {_shown(value)}: there is a sign in it that can't be seen; write it without that")
    if option in _PROGRAMS:
        return
    is_long = len(os.fsencode(value)) > _LONGEST_PATH
    if option in _PATHS:
        is_long = is_long or any(len(os.fsencode(part)) > _LONGEST_PART for part in value.split("/"))
    elif "url" not in option and option != "git":
        is_long = len(value) > _LONGEST_NAME
    if is_long:
        raise InputError(
            f"--{option} {_shown(value)}: this is too long, at {len(value)} characters; write a shorter one"
        )


def _check_builds(options: Mapping[str, Any]) -> None:
    """Check that each build has a form that builds have; with ``--nearest`` that of ``--torch`` may have another."""
    for option in ("torch", "good", "bad", "against"):
        value = options[option]
        if value is not None and not (option == "torch" and options["nearest"]):
            try:
                parse_build(value)
            except InputError as error:
                raise InputError(f"--{option}: {error}") from None


def _path(text: str) -> str:
    return os.path.expanduser(text)


def _shown(value: str) -> str:
    shown = scrub_secrets(one_line(value, 80))
    return f"'{shown}'" if " " in shown else shown
