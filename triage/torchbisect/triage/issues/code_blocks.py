"""Find the parts of an issue's body that may be code: fenced, indented, in HTML, or not marked at all.

CommonMark alone does not find them. People leave fences open, write code on the line of a fence, put fences inside
``<details>`` without a blank line before, quote them, indent them, or paste a script as plain text.
"""

from __future__ import annotations

import ast
import html
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^`]*)$")
_ONE_LINE_FENCE = re.compile(r"^[ \t]*`{3,}([^`]+)`{3,}[ \t]*$")
_LANGUAGE = re.compile(r"^[{.]*([A-Za-z][\w+#.-]*)[}]*(?:[ \t]+[\w=\"'{}.-]+)*$")
# A single # may also start a Python comment in a script without a fence.
_HEADING = re.compile(r"^#{2,6}[ \t]+(.+?)[ \t#]*$")
_FORM_HEADING = re.compile(r"^### (?:🐛|Error logs|Versions|Minified repro|Alternatives|Additional context)")
_BOLD_HEADING = re.compile(r"^\*\*([^*]+)\*\*:?[ \t]*$")
# The Python prompt >>> looks like a triple quotation.
_QUOTE = re.compile(r"^[ \t]{0,3}>(?!>)[ \t]?")
_WRAPPERS = re.compile(r"</?(?:details|summary|p|br|div|sub|kbd|b|i|em|strong)\b[^>\n]*>", re.IGNORECASE)
_HTML_OPEN = re.compile(r"<(pre|code)\b[^>\n]{0,200}>", re.IGNORECASE)
_CODE_START = re.compile(r"^(?:import|from)[ \t]+\w|^>>> |^In \[\d+\]: |^@torch\.|^def \w+\(|^class \w+")


@dataclass(frozen=True)
class CodeBlock:
    """A part of a body that may be code.

    Attributes:
        text: the code, without fence and common indentation.
        language: the language on the fence, in lower case; empty if there is none.
        section: the heading above it; empty before the first heading.
        before: the last paragraph before the block, in lower case.
    """

    text: str
    language: str
    section: str
    before: str


@dataclass(frozen=True)
class Section:
    """A heading and the text under it, as in GitHub's issue forms; the first section may have no heading."""

    title: str
    text: str


def sections(body: str) -> list[Section]:
    """Split the body at its headings; a ``#`` inside a fence is not a heading."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    mark = ""
    for line in body.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        bare = _QUOTE.sub("", line)
        fence = _FENCE.match(bare)
        heading = None if mark else _HEADING.match(bare) or _BOLD_HEADING.match(bare)
        if mark and _FORM_HEADING.match(bare):
            # A heading of the issue form ends an open fence.
            mark, heading, fence = "", _HEADING.match(bare), None
        if heading:
            parts.append((heading.group(1), []))
            continue
        if fence and not mark:
            mark = fence.group(1)
        elif mark and _closes(bare, mark):
            mark = ""
        parts[-1][1].append(line)
    return [Section(title, "\n".join(lines)) for title, lines in parts if title or any(map(str.strip, lines))]


def code_blocks(body: str) -> list[CodeBlock]:
    """Return all parts of the body that may be code, in their order."""
    return [block for section in sections(body) for block in _blocks_of(section)]


def outside_code(text: str) -> str:
    """Return the text of a section without its fenced blocks."""
    return "\n".join(words for kind, _, words in _pieces(text) if kind == "words")


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and set(stripped) == {mark[0]}


def _blocks_of(section: Section) -> Iterator[CodeBlock]:
    before = ""
    for kind, language, text in _pieces(section.text):
        if kind == "code":
            yield CodeBlock(_dedented(text), language, section.title, before)
            before = ""
            continue
        yield from _blocks_in_words(text, section.title)
        paragraphs = [p for p in re.split(r"\n[ \t]*\n", _WRAPPERS.sub("\n", text)) if p.strip()]
        before = paragraphs[-1].strip().lower()[-400:] if paragraphs else before


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of a text as ``("words", "", text)`` or ``("code", language, text)``."""
    lines, position = text.split("\n"), 0
    words: list[str] = []
    while position < len(lines):
        line = _QUOTE.sub("", lines[position])
        position += 1
        short = _ONE_LINE_FENCE.match(line)
        fence = _FENCE.match(line)
        if short or fence:
            yield "words", "", "\n".join(words)
            words = []
        if short:
            yield "code", "", short.group(1)
        elif fence:
            language, first = _language(fence.group(2).strip())
            code, position = _fenced(lines, position, fence.group(1))
            yield "code", language, "\n".join([*first, *code])
        else:
            words.append(lines[position - 1])
    yield "words", "", "\n".join(words)


def _language(info: str) -> tuple[str, list[str]]:
    """Split the rest of a fence's line into a language and the first line of the code."""
    if not info:
        return "", []
    found = _LANGUAGE.match(info)
    if found and not re.match(r"(?:import|from|def|class|with|for) ", info):
        return found.group(1).lower(), []
    named = re.match(r"(?i)(?:python3?|py)[ \t]+((?:import|from)[ \t].+)", info)
    return ("python", [named.group(1)]) if named else ("", [info])


def _fenced(lines: list[str], position: int, mark: str) -> tuple[list[str], int]:
    """Return the lines of the fenced block that begins at ``position``, and the position after it."""
    code = []
    while position < len(lines):
        line = _QUOTE.sub("", lines[position])
        position += 1
        if _closes(line, mark):
            break
        if line.rstrip().endswith(mark) and len(line.strip()) > len(mark):
            code.append(line.rstrip()[: -len(mark)])
            break
        code.append(line)
    return code, position


def _blocks_in_words(text: str, title: str) -> Iterator[CodeBlock]:
    """Yield code outside of fences: in HTML, indented, or without a mark."""
    rest = []
    for code, before in _html_code(text):
        rest.append(before)
        if "\n" in code.strip():
            code = html.unescape(re.sub(r"</?\w+[^<>\n]*>", "", code))
            yield CodeBlock(_dedented(code), "", title, before.strip().lower()[-200:])
    plain = _WRAPPERS.sub("", "\n".join(rest))
    yield from _indented(plain, title)
    yield from _unmarked(plain, title)


def _html_code(text: str) -> Iterator[tuple[str, str]]:
    """Yield the contents of ``<pre>`` and ``<code>`` with the text before each; last an empty text and the rest."""
    position, low = 0, text.lower()
    while found := _HTML_OPEN.search(text, position):
        end = low.find(f"</{found.group(1).lower()}>", found.end())
        if end < 0:
            break
        yield text[found.end() : end], text[position : found.start()]
        position = text.index(">", end) + 1
    yield "", text[position:]


def _indented(text: str, title: str) -> Iterator[CodeBlock]:
    for found in re.finditer(r"(?:^|\n[ \t]*\n)((?:(?: {4}|\t)[^\n]*\n?|[ \t]*\n)+)", text):
        code = _dedented(found.group(1))
        if "\n" in code.strip():
            yield CodeBlock(code, "", title, text[: found.start()].strip().lower()[-200:])


def _unmarked(text: str, title: str) -> Iterator[CodeBlock]:
    """Yield plain lines that are Python: from the first that looks like code, as far as they parse."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if _CODE_START.match(line)), None)
    if start is None:
        return
    taken = lines[start : start + 400]
    if taken[0].startswith((">>> ", "In [")):
        end = next((n for n, line in enumerate(taken) if not line.strip()), len(taken))
        yield CodeBlock("\n".join(taken[:end]), "", title, "")
        return
    for end in range(len(taken), 0, -1):
        # Markdown headings look like Python comments, so a few lines too many may parse; they do no harm.
        if taken[end - 1].strip() and parses("\n".join(taken[:end])):
            yield CodeBlock("\n".join(taken[:end]), "", title, "\n".join(lines[:start]).strip().lower()[-200:])
            return


def parses(text: str) -> bool:
    """Return true if a text is valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _dedented(text: str) -> str:
    return textwrap.dedent(text.expandtabs(4)).strip("\n")
