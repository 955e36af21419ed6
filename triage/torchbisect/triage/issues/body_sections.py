"""Split an issue's body at its headings and fences, in one pass over its lines.

CommonMark alone does not do. People leave fences open, write code on the line of a fence, put fences inside
``<details>`` without a blank line before, quote them or indent them. No regular expression here can backtrack: the time
grows with the length of the body and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A heading of PyTorch's issue form, which ends a fence that was left open.
_FORM_HEADINGS = tuple(
    f"### {title}" for title in ("🐛", "Error logs", "Versions", "Minified repro", "Alternatives", "Additional context")
)
_LIST_MARK = re.compile(r"(?:[-*+]|\d{1,3}[.)])[ \t]{1,4}(?=```|~~~)")
_LANGUAGE = re.compile(r"[{.]{0,2}([A-Za-z][\w+#.-]{0,30})(?=[\s}:,]|$)")
_CODE_WORD = re.compile(r"(?:import|from|def|class|with|for)\s")
#: The most levels of quotation marks that are removed.
_QUOTES = 5


@dataclass(frozen=True)
class Section:
    """A heading and the text under it, as in GitHub's issue forms; the first section may have no heading."""

    title: str
    text: str


@dataclass(frozen=True)
class Piece:
    """A part of a section: a fenced block with the language on its fence, or the text between two blocks."""

    text: str
    fenced: bool = False
    language: str = ""


@dataclass(frozen=True)
class _Fence:
    """The line that opens a fenced block.

    Attributes:
        mark: the marks that open it.
        words: the rest of the line.
        quotes: the levels of quotation marks before it.
        closed: the block ends on the same line.
    """

    mark: str
    words: str
    quotes: int
    closed: bool = False


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, whatever ends them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def sections(body: str) -> list[Section]:
    """Split the body at its headings; a ``#`` inside a fence is not a heading."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    inside: _Fence | None = None
    for line in lines_of(body):
        bare, _ = unquoted(line)
        if inside is not None and bare.startswith(_FORM_HEADINGS):
            inside = None
        if inside is None:
            title = _heading(bare)
            if title is not None:
                parts.append((title, []))
                continue
            fence = _fence(line)
            inside = fence if fence is not None and not fence.closed else None
        elif _closes(unquoted(line, inside.quotes)[0], inside.mark):
            inside = None
        parts[-1][1].append(line)
    return [Section(title, "\n".join(lines)) for title, lines in parts if title or any(map(str.strip, lines))]


def pieces(text: str) -> Iterator[Piece]:
    """Yield the fenced blocks of a section and the text between them, in their order."""
    lines, position = text.split("\n"), 0
    words: list[str] = []
    while position < len(lines):
        line = lines[position]
        position += 1
        fence = _fence(line)
        if fence is None:
            words.append(line)
            continue
        yield Piece("\n".join(words))
        words = []
        if fence.closed:
            yield Piece(fence.words, fenced=True)
            continue
        language, first = _language(fence.words)
        code, position = _fenced(lines, position, fence)
        yield Piece("\n".join([*first, *code]), fenced=True, language=language)
    yield Piece("\n".join(words))


def outside_fences(body: str) -> str:
    """Return a body without its fenced blocks."""
    return "\n".join(piece.text for part in sections(body) for piece in pieces(part.text) if not piece.fenced)


def unquoted(line: str, most: int = _QUOTES) -> tuple[str, int]:
    """Remove up to ``most`` quotation marks; return the rest of the line and their number.

    The Python prompt ``>>>`` is no quotation mark.
    """
    for level in range(most):
        bare = line.lstrip(" \t")
        if len(line) - len(bare) > 3 or not bare.startswith(">") or bare.startswith(">>"):
            return line, level
        line = bare[2:] if bare[1:2] in (" ", "\t") else bare[1:]
    return line, most


def _heading(line: str) -> str | None:
    """Return the title of a heading, or ``None``. A single ``#`` may be a comment of a script without a fence."""
    if line.startswith("##"):
        rest = line.lstrip("#")
        if len(line) - len(rest) <= 6 and rest[:1] in (" ", "\t"):
            return rest.strip(" \t").rstrip("# \t") or None
        return None
    bare = line.rstrip(" \t").removesuffix(":")
    if bare.startswith("**") and bare.endswith("**") and "*" not in bare[2:-2]:
        return bare[2:-2].strip() or None
    return None


def _fence(line: str) -> _Fence | None:
    bare, quotes = unquoted(line)
    bare = bare.strip(" \t")
    found = _LIST_MARK.match(bare)
    bare = bare[found.end() :] if found else bare
    mark = bare[:1]
    if mark not in ("`", "~"):
        return None
    rest = bare.lstrip(mark)
    count = len(bare) - len(rest)
    if count < 3:
        return None
    if mark == "~" or "`" not in rest:
        return _Fence(mark * count, rest.strip(" \t"), quotes)
    words = rest.rstrip("`")
    closed = len(rest) - len(words) >= 3 and "`" not in words
    return _Fence(mark * count, words, quotes, closed=True) if closed else None


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and not stripped.strip(mark[0])


def _fenced(lines: list[str], position: int, fence: _Fence) -> tuple[list[str], int]:
    """Return the lines of the fenced block that begins at ``position``, and the position after it."""
    code: list[str] = []
    while position < len(lines):
        line = unquoted(lines[position], fence.quotes)[0]
        position += 1
        if _closes(line, fence.mark):
            break
        bare = line.rstrip()
        if bare.endswith(fence.mark) and len(line.strip()) > len(fence.mark):
            code.append(bare[: -len(fence.mark)])
            break
        code.append(line)
    return code, position


def _language(words: str) -> tuple[str, list[str]]:
    """Split the rest of a fence's line into a language and the first line of the code."""
    if not words:
        return "", []
    found = _LANGUAGE.match(words)
    if found is None or _CODE_WORD.match(words):
        return "", [words]
    language, rest = found.group(1).lower(), words[found.end() :].strip()
    if language in ("python", "python3", "py") and _CODE_WORD.match(rest):
        return "python", [rest]
    if rest and not words.startswith("{") and any(sign in rest for sign in "()"):
        return "", [words]
    return language, []
