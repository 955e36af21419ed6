"""Replace control characters in foreign text, so that a terminal or a page shows them and doesn't obey."""

from __future__ import annotations

import re
import unicodedata

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Some letters and marks are invisible although Unicode does not put them into a category "other". A message could hide
# behind them: Braille blank, Hangul fillers, the combining grapheme joiner, variation selectors.
_INVISIBLE = frozenset("\u2800\u115f\u1160\u3164\uffa0\u034f") | {chr(c) for c in range(0xFE00, 0xFE10)}

# Characters that may need an escape. Letters and digits are excluded here because logs can be long.
_UNUSUAL = re.compile(rf"[^\w\n\t\x20-\x7e]|[{''.join(sorted(_INVISIBLE))}]")


def clean(text: str) -> str:
    """Return the text without invisible characters other than spaces, tabs and newlines.

    Terminal sequences are dropped, and every kind of line end becomes a newline. Control, bidirectional, zero-width,
    private and unpaired surrogate characters become Python escapes (``\\u202e``), which keep the meaning of a
    script's string literal.
    """
    text = _NEWLINES.sub("\n", _ANSI.sub("", text))
    return _UNUSUAL.sub(_escape_invisible, text)


def without_invisible(text: str) -> str:
    """Return the text without terminal sequences and invisible characters other than spaces, tabs and newlines."""
    return _UNUSUAL.sub(lambda found: found.group() if _is_visible(found.group()) else "", _ANSI.sub("", text))


def _is_visible(character: str) -> bool:
    return unicodedata.category(character)[0] != "C" and character not in _INVISIBLE


def _escape_invisible(found: re.Match[str]) -> str:
    character = found.group()
    if not _is_visible(character):
        code = ord(character)
        if code > 0xFFFF:
            return f"\\U{code:08x}"
        return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
    return character


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as ``1 question`` or ``2 questions``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def one_line(text: str, limit: int = 200) -> str:
    """Return the cleaned text on one line of at most ``limit`` characters; an ellipsis marks a cut."""
    line = " ".join(clean(text[: 8 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def shown_line(text: str) -> str:
    """Return the cleaned text with its spaces, on one line; a newline in a path or a message begins no other line."""
    return clean(text).replace("\n", " ")
