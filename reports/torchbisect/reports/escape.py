"""Foreign text made safe to stand in Markdown, in a terminal or on a page.

Scripts, exception messages and names of builds come from strangers and from the code under test. None of them may end
a fence, mention a person, load an image, hide text or move a cursor. The rules follow CommonMark 0.31 and what GitHub
adds to it: tables, bare links, ``@mentions`` and ``#123`` references.
"""

from __future__ import annotations

import re
import unicodedata


class Markdown(str):
    """Markdown that is finished: every foreign part of it has been through this module. Templates take nothing else."""

    __slots__ = ()


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# An underscore inside a word is no emphasis in CommonMark, and names are full of them.
_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_LINE_START = re.compile(r"^(\d{1,9})([.)])(?=\s|$)|^()([-+#=])")
_STARTERS = re.compile(
    r"@|#(?=\w)|\bgh-(?=\d)|:(?=[\w+-]+(?::|$))|\b(?:https?|ftp|mailto|xmpp):|\bwww\.|\$", re.IGNORECASE
)
_BACKTICKS = re.compile(r"`+")
# Besides "other" characters, which Unicode's categories name, some letters and marks have no ink: a message could hide
# behind them. (Braille blank, Hangul fillers, the combining grapheme joiner, variation selectors.)
_INKLESS = frozenset("\u2800\u115f\u1160\u3164\uffa0\u034f") | {chr(c) for c in range(0xFE00, 0xFE10)}


# What may have to be shown otherwise; letters and digits are passed over first, for the sake of long logs.
_UNUSUAL = re.compile(rf"[^\w\n\t\x20-\x7e]|[{''.join(sorted(_INKLESS))}]")


def clean(text: str) -> str:
    """The text with nothing invisible left in it but spaces, tabs and newlines.

    Terminal sequences are dropped and every kind of line end becomes a newline. Control, bidirectional, zero-width,
    private and unpaired surrogate characters are shown as Python escapes (``\\u202e``), which keeps what a script's
    string literal means.
    """
    text = _NEWLINES.sub("\n", _ANSI.sub("", text))
    return _UNUSUAL.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    character = found.group()
    if unicodedata.category(character)[0] == "C" or character in _INKLESS:
        code = ord(character)
        if code > 0xFFFF:
            return f"\\U{code:08x}"
        return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
    return character


def one_line(text: str, limit: int = 200) -> str:
    """The cleaned text on one line of at most ``limit`` characters; an ellipsis stands where it was cut."""
    line = " ".join(clean(text[: 8 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def fence(text: str, language: str = "") -> Markdown:
    """A fenced block: its fence is longer than every run of backticks inside, so that nothing inside can end it."""
    body = clean(text).rstrip("\n")
    marks = "`" * max(3, _longest_run(body) + 1)
    return Markdown(f"{marks}{language}\n{body}\n{marks}")


def code(text: str, limit: int = 200) -> Markdown:
    """A code span on one line: its delimiter is longer than every run of backticks inside. Nothing for nothing."""
    line = one_line(text, limit)
    if not line:
        return Markdown()
    marks = "`" * (_longest_run(line) + 1)
    # CommonMark takes one space off each end where both ends have one: needed beside a backtick.
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return Markdown(f"{marks}{padding}{line}{padding}{marks}")


def code_cell(text: str, limit: int = 200) -> Markdown:
    """``code`` for a cell of a table: GitHub splits a row at its pipes before it looks for code, unless escaped."""
    return Markdown(code(text, limit).replace("|", "\\|"))


def prose(text: str, limit: int = 400) -> Markdown:
    """The text on one line as Markdown that shows just that text: no markup, link, image, mention or reference.

    GitHub looks for mentions, references, emoji and bare links in the finished text, where a backslash is gone again,
    so a zero-width space is put in behind the character that starts one.
    """
    line = one_line(text, limit)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _MARKUP.sub(r"\\\g<0>", line)
    line = _LINE_START.sub(r"\1\\\2\4", line)
    return Markdown(_STARTERS.sub("\\g<0>&#8203;", line))
