"""Remove secrets and home folders from every text that is written or shown.

A secret is recognized by its place (an address, a header), by its form (the prefixes that GitHub, GitLab, PyPI and
others give their tokens), or because it is the value of one of this process's variables or arguments. Everything else
stays as it is: a text without a secret is returned unchanged, and a second pass changes nothing. The time grows with
the length of the text and not faster.
"""

from __future__ import annotations

import base64
import functools
import html
import itertools
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

from torchbisect.core.printable import without_invisible
from torchbisect.core.secret_forms import ENCODED_PATTERNS, END, PARAMETER, PATTERNS, SECRET_OPTION

#: The text in place of a secret.
HIDDEN = "****"

# A quote may be part of a password, and may also end the address.
_ADDRESSES = re.compile(rf"(?:[A-Za-z][A-Za-z0-9+.-]{{0,20}})?://(?:[^{END}]|'(?![,)\]}};:\s]|$))*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}$")
_AUTHORITY = re.compile(r"[^/?#]*")
_PORT = re.compile(r":\d{1,5}$|:$")
_USER_ENCODED = re.compile(rf"(%3A%2F%2F)(?:(?!%2F)[^&{END}])*%40", re.IGNORECASE)
_HOMES = re.compile(
    r"(?<![\w.~…*-])(?:(?:/(?:home|Users)/|(?<![\\/])[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2})(?!~)[^\s/\\'\"`<>|;:,()\[\]{}=]+"
    r"|/root(?![\w.-]))"
)

_SECRET_VARIABLE = re.compile(
    r"TOKEN$|KEY$|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?$|_PAT$|_PWD$|_AUTH$", re.IGNORECASE
)
#: Values that say nothing, although the name of their variable sounds secret.
_PLAIN_VALUES = frozenset(("disabled", "enabled", "default", "anonymous", "undefined", "unknown", "required"))
_SHORTEST = 6
#: From this length on a value is recognized inside a longer word too.
_LONG = 12
_MOST_PASSES = 8


class Scrubber:
    """Removes secrets from texts; ``values`` are secrets by themselves, ``home`` is the user's home folder."""

    def __init__(self, values: Iterable[str] = (), home: str = "") -> None:
        forms = {form for value in values for cased in _cases(value) for form in _forms(cased)}
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._values = re.compile("|".join(map(_bounded, ordered))) if ordered else None
        home = home.rstrip("/")
        self._home = re.compile(rf"(?<![\w.~…*-]){re.escape(home)}(?![\w.-])") if home.startswith("/") else None

    def secrets(self, text: str) -> str:
        """Return the text without secrets, and without its invisible parts if a secret shows once these are dropped."""
        text = self._until_stable(text)
        bare = without_invisible(text)
        hidden = text if bare == text else self._until_stable(bare)
        return text if hidden == bare else hidden

    def _until_stable(self, text: str) -> str:
        for _ in range(_MOST_PASSES):
            before, text = text, self._pass(text)
            if text == before:
                break
        return text

    def __call__(self, text: str) -> str:
        """Return the text without secrets, and with ``~`` for home folders."""
        for _ in range(_MOST_PASSES):
            before, text = text, self.secrets(text)
            if self._home is not None:
                text = self._home.sub("~", text)
            text = _HOMES.sub("~", text)
            if text == before:
                break
        return text

    def _pass(self, text: str) -> str:
        if "://" in text:
            text = _ADDRESSES.sub(lambda found: _without_users(found.group()), text)
        if "%" in text:
            text = _USER_ENCODED.sub(r"\1", text)
            for pattern in ENCODED_PATTERNS:
                text = pattern.sub(rf"\g<1>{HIDDEN}", text)
        lowered = text.lower()
        for words, pattern in PATTERNS:
            if any(word in lowered for word in words):
                text = pattern.sub(rf"\g<1>{HIDDEN}", text)
        return self._values.sub(HIDDEN, text) if self._values is not None else text


def scrub(text: str) -> str:
    """Return the text without this process's secrets and others of a known form, and with ``~`` for home folders."""
    return scrubber()(text)


def scrub_secrets(text: str) -> str:
    """Return the text without this process's secrets and others of a known form; paths stay."""
    return scrubber().secrets(text)


def scrubber(arguments: Iterable[str] = ()) -> Scrubber:
    """Return the scrubber for this process's variables, arguments and home folder, and for more arguments."""
    found = known_secrets(os.environ, sys.argv) | known_secrets({}, arguments)
    return _scrubber(tuple(sorted(found)), os.environ.get("HOME", ""))


def known_secrets(variables: Mapping[str, str], arguments: Iterable[str] = ()) -> set[str]:
    """Return the values of variables and options whose names sound secret, and the passwords in all addresses."""
    arguments = tuple(arguments)
    found = {value for name, value in variables.items() if _SECRET_VARIABLE.search(name)}
    found |= set(_arguments_of_secret_options(arguments))
    for text in (*variables.values(), *arguments):
        if "://" in text:
            found |= {part for match in _ADDRESSES.finditer(text) for part in _passwords(match.group())}
            found |= {match.group()[match.end(1) - match.start() :] for match in PARAMETER.finditer(text)}
    return {value for value in found if _SHORTEST <= len(value) <= 4096 and value.lower() not in _PLAIN_VALUES}


def _arguments_of_secret_options(arguments: tuple[str, ...]) -> Iterator[str]:
    """Yield what follows an option such as ``--hf-token``, in its own word or after an equals sign."""
    for word, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        if SECRET_OPTION.fullmatch(option):
            given = value if equals else following
            if not given.startswith("-"):
                yield given


@functools.lru_cache(maxsize=16)
def _scrubber(values: tuple[str, ...], home: str) -> Scrubber:
    return Scrubber(values, home)


def _without_users(text: str) -> str:
    """Return a run of addresses without users and passwords; the user of an SSH address is no secret."""
    first, *rest = text.split("://")
    kept = [first]
    for part in rest:
        given = _user(part)
        user = given.partition(":")[0]
        scheme = _SCHEME.search(kept[-1])
        ssh = scheme is not None and scheme.group().lower().endswith("ssh")
        host = part[len(given) :]
        kept.append(user + host if ssh and user else host.removeprefix("@") if given else part)
    return "://".join(kept)


def _user(address: str) -> str:
    """Return user and password at the beginning of an address without its scheme, ``user:password``; empty if none."""
    authority = _AUTHORITY.match(address)
    size = authority.end() if authority else 0
    if "@" in address[:size]:
        return address[:size].rpartition("@")[0]
    # A password may hold a "/" although it should be written as %2F; what looks like a port is one.
    at = address.find("@", size)
    if at < 0 or ":" not in address[:size] or address.startswith("[") or _PORT.search(address[:size]):
        return ""
    end = _AUTHORITY.match(address, at)
    return address[: address.rindex("@", 0, end.end() if end else None)]


def _passwords(address: str) -> set[str]:
    """Return the passwords in a run of addresses, or the user where there is no password, as written and decoded."""
    pieces = address.split("://")
    found: set[str] = set()
    for before, part in itertools.pairwise(pieces):
        user, colon, password = _user(part).partition(":")
        secret = password if colon else "" if before.lower().endswith("ssh") else user
        found |= {secret, unquote(secret)}
    return found


def _cases(value: str) -> set[str]:
    """Return a value in capitals and the like, where its pattern is not found in any mixture of them anyway."""
    if value.isascii() and _has_any_case(value):
        return {value}
    return {value, value.upper(), value.lower(), value.casefold(), value.swapcase(), value.title(), value.capitalize()}


def _has_any_case(value: str) -> bool:
    """Return true for a value that is no word, so that it is looked for in any mixture of capitals."""
    return len(value) >= _LONG or any(map(str.isdigit, value))


def _forms(value: str) -> Iterator[str]:
    """Yield the ways in which programs and files write a value, and the lines of one that has several."""
    data = value.encode("utf-8", "surrogateescape")
    yield from (value, quote(value, safe=""), quote_plus(value), html.escape(value), html.escape(value, quote=False))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield from (repr(value)[1:-1], ascii(value)[1:-1], repr(data)[2:-1], shlex.quote(value))
    yield base64.b64encode(data).decode()
    lines = [line for line in map(str.strip, value.splitlines()) if not line.startswith("-----")]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _LONG or _is_random(line))


def _is_random(word: str) -> bool:
    """Return true for a short text that is no word or name: letters, capitals, digits and signs change all the time.

    Half of its places are such changes. A line like ``layer1`` or ``BatchNorm2d`` may stand anywhere in a report.
    """
    kinds = [1 if one.islower() else 2 if one.isupper() else 3 if one.isdigit() else 4 for one in word]
    changes = sum(before != after for before, after in itertools.pairwise(kinds))
    return len(word) >= _SHORTEST and 3 in kinds and len({*kinds}) > 2 and changes * 2 >= len(word)


def _bounded(value: str) -> str:
    """Return a pattern for a form; a long one, or one with a digit, is found in any mixture of capitals."""
    pattern = re.escape(value)
    if _has_any_case(value):
        pattern = f"(?i:{pattern})"
    return pattern if len(value) >= _LONG else rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"
