"""One issue as people have it: a file of any form, its address, or ``OWNER/REPO#N``."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from torchbisect.core.decode import DecodeError, JsonLimits, read_json
from torchbisect.core.errors import InputError
from torchbisect.triage.github import API, GitHub, Post, Reference

#: The most bytes of a file with an issue; GitHub's API gives a few thousand beside the body.
MAX_BYTES = 8 << 20
_LIMITS = JsonLimits(size=MAX_BYTES)
# A path drops one of two slashes: "https:/github.com/..." is what is left of an address.
_ADDRESS = re.compile(r"https:/{1,2}(?=[\w.-]{1,100}/)")


def reference_in(text: str) -> Reference | None:
    """Return the issue that a text names as ``OWNER/REPO#N`` or by its address; ``None`` if it names none."""
    if not _ADDRESS.match(text) and "#" not in text:
        return None
    try:
        return Reference.parse(_ADDRESS.sub("https://", text, count=1))
    except InputError:
        return None


def fetch(reference: Reference) -> Post:
    """Read an issue from GitHub, with the token in ``GITHUB_TOKEN`` if there is one.

    Raises:
        InputError: there is no such issue.
        MachineError: GitHub does not answer.
    """
    with GitHub(os.environ.get("GITHUB_TOKEN"), base=os.environ.get("GITHUB_API_URL", API)) as github:
        return github.issue(reference)


def read_post(text: str) -> Post:
    """Read the issue that a user names: a file if there is one of that name, else ``OWNER/REPO#N`` or an address.

    Raises:
        InputError: there is neither such a file nor such an issue.
        MachineError: GitHub does not answer.
    """
    reference = reference_in(text)
    if reference is not None and not os.path.exists(text):
        return fetch(reference)
    if text.startswith(("https://", "http://")):
        Reference.parse(text)
    return post_in(Path(text))


def post_in(file: Path) -> Post:
    """Read a file with one issue: JSON of GitHub's API or of ``gh issue view --json``, or else its text in Markdown.

    Raises:
        InputError: the file cannot be read, or is JSON but no issue.
    """
    try:
        if not file.is_file():
            raise InputError(f"{file} is no file: name a file with the issue, OWNER/REPO#N, or the issue's address")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}; name a file with the issue") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{file} has more than {MAX_BYTES >> 20} MB: name a file with one issue")
    text = data.decode("utf-8-sig", errors="replace")
    if file.suffix.lower() == ".json" or text.lstrip()[:1] in ("{", "["):
        return _post_in_json(file, text)
    return _post_in_markdown(text, file)


def _post_in_json(file: Path, text: str) -> Post:
    try:
        found: Any = read_json(text, _LIMITS)
    except DecodeError as error:
        if file.suffix.lower() != ".json" and not _is_json(text):
            return _post_in_markdown(text, file)
        raise InputError(f"{file} is not JSON: {error}; name an issue in the form of GitHub's API") from error
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, list):
        raise InputError(f"{file} holds {len(found)} issues: run torchbisect triage {file}")
    if not isinstance(found, dict) or not isinstance(found.get("body"), (str, type(None))) or "body" not in found:
        raise InputError(f"{file} is not an issue: it has no body; write it with gh issue view N --json title,body")
    return Post.of({"number": 0, **found, "html_url": found.get("html_url") or found.get("url") or ""})


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _post_in_markdown(text: str, file: Path) -> Post:
    """Return the issue in a Markdown text; a heading of the first rank in its first line is the title."""
    if not text.strip():
        raise InputError(f"{file} is empty: name a file with the issue")
    first, _, rest = text.lstrip("\n").partition("\n")
    titled = first.startswith("# ")
    return Post(identity=0, author="", body=rest if titled else text, title=first[2:].strip() if titled else "")
