"""Remove the machine's own paths from text that strangers will read.

A path tells who the user is and how the machine is set up. The reader of a bug report only needs the end of it, from
the package on.
"""

from __future__ import annotations

import re

# A path starts where no other path, word or address goes on: "a/b" and "https://host/x" stay as they are.
# The look-behinds come after the slash because a slash is found fast.
_START = r"/(?:(?<![\w/.~…*\\]/)|(?<=\b[ILB]/)|(?<=-isystem/)|(?<=file:///))"
_POSIX = re.compile(_START + r"(?!/)(?:[^\s/'\"`<>|;:,()\[\]{}=]+/)+[^\s/'\"`<>|;:,()\[\]{}=]*")
_ALONE = re.compile(_START + r"(?:root|home|Users)/?(?![\w.-])")
_WINDOWS = re.compile(r"(?<!\w)[A-Za-z]:(?:[\\/]{1,2}[^\s\\/'\"`<>|;:,()…]+)+[\\/]{0,2}")
_KEPT = re.compile(r"/(?:dev|proc|sys)/")
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
_LIBRARY = re.compile(r".*/(?=python3(?:\.\d+)?t?/)")


def without_machine_paths(text: str) -> str:
    """Return the text with every absolute path cut down to the part that is the same on every machine.

    ``/x/site-packages/torch/a.py`` becomes ``…/torch/a.py`` and ``/usr/lib/python3.11/b.py`` becomes
    ``…/python3.11/b.py``. Of any other path the last part stays: ``…/repro.py``. Relative paths, web addresses,
    ``/dev``, ``/proc`` and ``/sys`` are unchanged.
    """
    text = _WINDOWS.sub(lambda match: _short(match.group()[2:].replace("\\", "/")), text)
    text = _POSIX.sub(lambda match: _short(match.group()), text)
    return _ALONE.sub("…", text)


def _short(path: str) -> str:
    if _KEPT.match(path):
        return path
    for root in (_PACKAGES, _LIBRARY):
        found = root.match(path)
        if found and path[found.end() :]:
            return "…/" + path[found.end() :]
    last = path.rstrip("/").rsplit("/", 1)[-1]
    return "…/" + last + ("/" if path.endswith("/") and last else "")


def in_one_folder(command: str) -> str:
    """Return a command with only the last part of each absolute path, as if all its files lay in one folder."""
    return without_machine_paths(command).replace("…/", "")
