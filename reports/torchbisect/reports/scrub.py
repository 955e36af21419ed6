"""The machine's own paths taken out of text that strangers will read.

A path says who somebody is and how their machine is laid out, and helps no reader of a bug: what a reader needs is the
end of it, from the package on.
"""

from __future__ import annotations

import re

# A path starts where no path, word or address is going on already: "a/b" and "https://host/x" keep theirs.
# (Looked at after the slash, which is found fast.)
_START = r"/(?:(?<![\w/.~…*\\]/)|(?<=\b[ILB]/)|(?<=-isystem/)|(?<=file:///))"
_POSIX = re.compile(_START + r"(?!/)(?:[^\s/'\"`<>|;:,()\[\]{}=]+/)+[^\s/'\"`<>|;:,()\[\]{}=]*")
_ALONE = re.compile(_START + r"(?:root|home|Users)/?(?![\w.-])")
_WINDOWS = re.compile(r"(?<!\w)[A-Za-z]:(?:[\\/]{1,2}[^\s\\/'\"`<>|;:,()…]+)+[\\/]{0,2}")
_KEPT = re.compile(r"/(?:dev|proc|sys)/")
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
_LIBRARY = re.compile(r".*/(?=python3(?:\.\d+)?t?/)")


def without_machine(text: str) -> str:
    """The text with every absolute path cut down to what is the same on every machine.

    ``/x/site-packages/torch/a.py`` becomes ``…/torch/a.py``, ``/usr/lib/python3.11/b.py`` becomes
    ``…/python3.11/b.py``, any other its last part, ``…/repro.py``. Relative paths, addresses of the web, and ``/dev``,
    ``/proc`` and ``/sys`` stay.
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
    """A command whose absolute paths are cut to their last part, so that it can be typed beside the files it names."""
    return without_machine(command).replace("…/", "")
