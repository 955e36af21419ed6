"""Remove secrets and home folders from every text that is written or shown.

A secret is recognized by its place (an address, a header), by its form (the prefixes that GitHub, GitLab, PyPI and
others give their tokens), or because it is the value of one of this process's variables or arguments. Everything else
stays as it is: a text without a secret is returned unchanged, and a second pass changes nothing. The time grows with
the length of the text and not faster.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

#: The text in place of a secret.
HIDDEN = "****"

_END = r"\s'\"<>`\\"
# A quote may be part of a password, and may also end the address.
_ADDRESSES = re.compile(rf"(?:[A-Za-z][A-Za-z0-9+.-]{{0,20}})?://(?:[^{_END}]|'(?![,)\]}};:\s]|$))*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}$")
_AUTHORITY = re.compile(r"[^/?#]*")
_PORT = re.compile(r":\d{1,5}$|:$")
_USER_ENCODED = re.compile(rf"(%3A%2F%2F)(?:(?!%2F)[^&{_END}])*%40", re.IGNORECASE)
_SECRET_NAME = (
    r"(?:[\w.-]{0,40}[_.-])?(?:token|secret|password|passwd|passphrase|pwd|signature|sig|api_?key|access_?key(?:_?id)?"
    r"|awsaccesskeyid|private_?key|key|auth|authorization|credentials?|session|jwt|sas)"
)
_PARAMETER = re.compile(rf"([?&;#]{_SECRET_NAME}=)(?!\*{{4}}(?:[&;#{_END}]|$))[^&;#{_END}]+", re.IGNORECASE)
_PARAMETER_ENCODED = re.compile(
    rf"((?:%3F|%26){_SECRET_NAME}%3D)(?!\*{{4}})(?:(?!%26|%23)[^&;#{_END}])+", re.IGNORECASE
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_HEADER = re.compile(
    r"(\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|digest)\s{1,3})(?!\*{4})[^\s,;'\"\\]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b((?:bearer|basic) {1,3})(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"(?<![A-Z0-9_])([A-Z][A-Z0-9_]{0,60}(?:TOKEN|SECRET|PASSWORD|PASSWD|_KEY)=['\"]?)"
    r"(?=[^\s\d'\"]{0,200}\d)(?=[^\sA-Za-z'\"]{0,200}[A-Za-z])[^\s'\"]{8,}"
)
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas)-[A-Za-z0-9_.-]{15,}"
    r"|pypi-(?:Ag[A-Za-z0-9_-]{14,}|[A-Za-z0-9_-]{50,})"
    r"|hf_[A-Za-z0-9]{20,}"
    r"|sk-(?=[a-z_-]{0,200}[A-Z0-9])[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|AIza[A-Za-z0-9_-]{35}|npm_[A-Za-z0-9]{36}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
    r")"
)
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
        forms = {form for value in values for form in (value, quote(value, safe=""), json.dumps(value)[1:-1])}
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._values = re.compile("|".join(map(_bounded, ordered))) if ordered else None
        home = home.rstrip("/")
        self._home = re.compile(rf"(?<![\w.~…*-]){re.escape(home)}(?![\w.-])") if home.startswith("/") else None

    def secrets(self, text: str) -> str:
        """Return the text without secrets."""
        for _ in range(_MOST_PASSES):
            before, text = text, self._pass(text)
            if text == before:
                break
        return text

    def __call__(self, text: str) -> str:
        """Return the text without secrets, and with ``~`` for home folders."""
        text = self.secrets(text)
        if self._home is not None:
            text = self._home.sub("~", text)
        return _HOMES.sub("~", text)

    def _pass(self, text: str) -> str:
        if "://" in text:
            text = _ADDRESSES.sub(lambda found: _without_users(found.group()), text)
        if "%" in text:
            text = _PARAMETER_ENCODED.sub(rf"\1{HIDDEN}", _USER_ENCODED.sub(r"\1", text))
        text = _PRIVATE_KEY.sub(HIDDEN, text)
        for pattern in (_PARAMETER, _HEADER, _BEARER, _ASSIGNED):
            text = pattern.sub(rf"\g<1>{HIDDEN}", text)
        text = _TOKENS.sub(HIDDEN, text)
        return self._values.sub(HIDDEN, text) if self._values is not None else text


def scrub(text: str) -> str:
    """Return the text without this process's secrets and others of a known form, and with ``~`` for home folders."""
    return scrubber()(text)


def scrub_secrets(text: str) -> str:
    """Return the text without this process's secrets and others of a known form; paths stay."""
    return scrubber().secrets(text)


def scrubber() -> Scrubber:
    """Return the scrubber for this process's variables, arguments and home folder."""
    return _scrubber(tuple(sorted(known_secrets(os.environ, sys.argv))), os.environ.get("HOME", ""))


def known_secrets(variables: Mapping[str, str], arguments: Iterable[str] = ()) -> set[str]:
    """Return the values of variables whose names sound secret, and the passwords in all addresses."""
    found = {value for name, value in variables.items() if _SECRET_VARIABLE.search(name)}
    for text in (*variables.values(), *arguments):
        if "://" in text:
            found |= {part for match in _ADDRESSES.finditer(text) for part in _passwords(match.group())}
    return {value for value in found if _SHORTEST <= len(value) <= 4096 and value.lower() not in _PLAIN_VALUES}


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


def _bounded(value: str) -> str:
    pattern = re.escape(value)
    return pattern if len(value) >= _LONG else rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"
