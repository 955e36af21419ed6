"""Escape foreign text for Markdown, a terminal and HTML, and shorten the paths of this machine in it.

Scripts, exception messages and names of builds come from strangers and from the code under test. None of them may end
a fence, mention a person, load an image, hide text or move a cursor. The rules follow CommonMark 0.31 and GitHub's
additions to it: tables, bare links, ``@mentions`` and ``#123`` references.

A path tells who the user is and how the machine is set up. The reader of a bug report only needs the end of it, from
the package on.
"""

from __future__ import annotations

import re

from torchbisect.core.printable import clean as clean
from torchbisect.core.printable import one_line as one_line


class Markdown(str):
    """Safe Markdown: this module has escaped every foreign part of it. Templates accept nothing else."""

    __slots__ = ()


# An underscore inside a word is not emphasis in CommonMark, and many names have one.
_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_LINE_START = re.compile(r"^(\d{1,9})([.)])(?=\s|$)|^()([-+#=])")
_STARTERS = re.compile(
    r"@|#(?=\w)|\bgh-(?=\d)|:(?=[\w+-]+(?::|$))|\b(?:https?|ftp|mailto|xmpp):|\bwww\.|\$", re.IGNORECASE
)
_BACKTICKS = re.compile(r"`+")


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def fence(text: str, language: str = "") -> Markdown:
    """Return a fenced block; its fence is longer than every run of backticks inside, so nothing inside can end it."""
    body = clean(text).rstrip("\n")
    marks = "`" * max(3, _longest_run(body) + 1)
    return Markdown(f"{marks}{language}\n{body}\n{marks}")


def code(text: str, limit: int = 200) -> Markdown:
    """Return a code span on one line, with a delimiter longer than every run of backticks inside; empty for no text."""
    line = one_line(text, limit)
    if not line:
        return Markdown()
    marks = "`" * (_longest_run(line) + 1)
    # CommonMark strips one space from both ends. A backtick at an end needs that space.
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return Markdown(f"{marks}{padding}{line}{padding}{marks}")


def code_cell(text: str, limit: int = 200) -> Markdown:
    """Return a code span for a table cell, with escaped pipes: GitHub splits rows at pipes before it looks for code."""
    return Markdown(code(text, limit).replace("|", "\\|"))


def prose(text: str, limit: int = 400) -> Markdown:
    """Return the text on one line as Markdown without markup, links, images, mentions or references.

    GitHub looks for mentions, references, emoji and bare links in the rendered text, where a backslash has no effect.
    So a zero-width space follows each character that starts one.
    """
    line = one_line(text, limit)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _MARKUP.sub(r"\\\g<0>", line)
    line = _LINE_START.sub(r"\1\\\2\4", line)
    return Markdown(_STARTERS.sub("\\g<0>&#8203;", line))


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


def short_line(text: str, limit: int = 400) -> str:
    """Return the text on one line without the machine's paths, cut to ``limit`` characters before they are removed."""
    return without_machine_paths(one_line(text, limit))
