"""Find the parts of an issue's body that may be code: fenced, indented, in HTML, in a shell command, or not marked."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchbisect.triage.issues.body_sections import pieces, sections
from torchbisect.triage.issues.python_text import CODE_START, dedented, python_prefix

#: Languages of command lines, which may hold a script.
SHELLS = frozenset({"bash", "sh", "shell", "console", "zsh", "shell-session"})
# None of these can backtrack: what repeats is bounded, or stops at the next bracket.
_WRAPPERS = re.compile(r"</?(?:details|summary|p|br|div|sub|kbd|b|i|em|strong)\b[^<>\n]{0,200}>", re.IGNORECASE)
_HTML_OPEN = re.compile(r"<(pre|code)\b[^<>\n]{0,200}>", re.IGNORECASE)
_HTML_CLOSE = {name: re.compile(f"</{name}>", re.IGNORECASE) for name in ("pre", "code")}
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>")
_HERE_DOCUMENT = re.compile(r"<<-?\s?(['\"]?)([A-Za-z_]\w{0,30})\1")
_INLINE = re.compile(r"\bpython[\d.]{0,5} -c (['\"])")
#: The most lines of a script that is not marked as code, and the most places where one is looked for.
_LINES, _STARTS = 400, 3
#: The most characters that are kept of the text before a block.
_BEFORE = 400


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


def code_blocks(body: str) -> Iterator[CodeBlock]:
    """Yield all parts of the body that may be code, in their order."""
    for section in sections(body):
        before = ""
        for piece in pieces(section.text):
            if piece.fenced:
                block = CodeBlock(dedented(piece.text), piece.language, section.title, before)
                yield block
                yield from _in_shell(block)
                before = ""
            else:
                yield from _in_words(piece.text, section.title)
                before = _last_paragraph(piece.text) or before


def _last_paragraph(text: str) -> str:
    kept: list[str] = []
    for line in reversed(_WRAPPERS.sub("\n", text).split("\n")):
        if line.strip():
            kept.append(line)
        elif kept:
            break
    return "\n".join(reversed(kept)).strip().lower()[-_BEFORE:]


def _in_shell(block: CodeBlock) -> Iterator[CodeBlock]:
    """Yield a script in a here document or after ``python -c``."""
    lines = block.text.split("\n")
    for number, line in enumerate(lines):
        found = _HERE_DOCUMENT.search(line)
        if found and block.language != "python":
            rest = lines[number + 1 :]
            end = next((n for n, text in enumerate(rest) if text.strip() == found.group(2)), len(rest))
            yield CodeBlock(dedented("\n".join(rest[:end])), "python", block.section, block.before)
            return
    inline = _INLINE.search(block.text)
    if inline:
        rest_of_text = block.text[inline.end() :]
        end = rest_of_text.rfind(inline.group(1))
        code = rest_of_text[: end if end >= 0 else None].replace('\\"', '"')
        yield CodeBlock(dedented(code), "python", block.section, block.before)


def _in_words(text: str, title: str) -> Iterator[CodeBlock]:
    """Yield code outside of fences: in HTML, indented, or without a mark."""
    rest = []
    for code, before in _html_code(text):
        rest.append(before)
        if "\n" in code.strip():
            yield CodeBlock(dedented(html.unescape(_TAG.sub("", code))), "", title, _last_paragraph(before))
    lines = _WRAPPERS.sub("", "\n".join(rest)).split("\n")
    yield from _indented(lines, title)
    yield from _unmarked(lines, title)


def _html_code(text: str) -> Iterator[tuple[str, str]]:
    """Yield the contents of ``<pre>`` and ``<code>`` with the text before each; last an empty text and the rest."""
    start, position, left_open = 0, 0, set()
    while found := _HTML_OPEN.search(text, position):
        position = found.end()
        name = found.group(1).lower()
        end = None if name in left_open else _HTML_CLOSE[name].search(text, position)
        if end is None:
            # None of the later ones is closed either, so the search is not repeated.
            left_open.add(name)
            continue
        yield text[found.end() : end.start()], text[start : found.start()]
        start = position = end.end()
    yield "", text[start:]


def _indented(lines: list[str], title: str) -> Iterator[CodeBlock]:
    """Yield each run of indented lines that follows a blank line."""
    number, before = 0, ""
    while number < len(lines):
        first = number
        while number < len(lines) and (not lines[number].strip() or lines[number].startswith(("    ", "\t"))):
            number += 1
        code = dedented("\n".join(lines[first:number]))
        if "\n" in code.strip() and (first == 0 or not lines[first].strip()):
            yield CodeBlock(code, "", title, before.strip().lower()[-_BEFORE:])
        if number < len(lines):
            before = lines[number][-_BEFORE:]
        number += 1


def _unmarked(lines: list[str], title: str) -> Iterator[CodeBlock]:
    """Yield plain lines that are Python: from the first that looks like code, as far as they parse."""
    starts = [number for number, line in enumerate(lines) if CODE_START.match(line)][:_STARTS]
    for start in starts:
        taken = lines[start : start + _LINES]
        before = _last_paragraph("\n".join(lines[max(0, start - 10) : start]))
        if taken[0].startswith((">>>", "In [", "In[")):
            end = next((n for n, line in enumerate(taken) if not line.strip()), len(taken))
            yield CodeBlock("\n".join(taken[:end]), "", title, before)
            return
        # Markdown headings look like Python comments, so a few lines too many may parse; they do no harm.
        count = python_prefix(taken)
        if count:
            yield CodeBlock("\n".join(taken[:count]), "", title, before)
            return
