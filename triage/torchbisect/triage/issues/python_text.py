"""Parse text that may be Python, and repair the faults that keep a pasted script from being Python."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
import warnings
from collections.abc import Sequence

from torchbisect.core.python_text import parse_python

#: The most syntax errors at which a text is cut to find the part that is Python.
_CUTS = 8
_PROMPT = re.compile(r"[ \t]{0,12}(?:>>>|In ?\[[\d ]{0,6}\]:)(?: |$)")
_PROMPTED = re.compile(r"[ \t]{0,12}(?:>>>|\.\.\.|In ?\[[\d ]{0,6}\]:|\.{3,8}:)(?: (.*))?")
_MAGIC = re.compile(r"[ \t]{0,12}[%!]")
_DOTS = re.compile(r"([ \t]{0,200})(?:…|\[\.\.\.\]|\.{4,20})[ \t]{0,20}")
CODE_START = re.compile(r"(?:import|from)[ \t]+\w|>>> |In ?\[[\d ]{0,6}\]: |@torch\.|def \w+\(|class \w+|#!/")
_OUTPUT = ("Traceback (most recent call last)", "[rank", "Error: ", "Warning: ")


@functools.lru_cache(maxsize=8)
def parsed(text: str) -> ast.Module | SyntaxError | ValueError:
    """Return the syntax tree of a text, or the error if it is not Python. Nobody may change the tree."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse_python(text)
    except (SyntaxError, ValueError) as error:
        return error
    except (RecursionError, MemoryError):
        return ValueError("an expression that is nested too deeply")


def parses(text: str) -> bool:
    """Return true if a text is valid Python."""
    return isinstance(parsed(text), ast.Module)


def tree_of(text: str) -> ast.Module:
    """Return the syntax tree of a text, which is empty if the text is not Python."""
    found = parsed(text)
    return found if isinstance(found, ast.Module) else ast.Module([], [])


def syntax_error(text: str) -> str | None:
    """Return the place and message of the syntax error of a text, or ``None`` if it is Python."""
    found = parsed(text)
    if isinstance(found, ast.Module):
        return None
    return f"line {found.lineno or 1}: {found.msg}" if isinstance(found, SyntaxError) else str(found)


def python_prefix(lines: Sequence[str]) -> int:
    """Return how many of the first lines are Python; 0 if that is not found after a few cuts."""
    end = len(lines)
    for _ in range(_CUTS):
        while end and not lines[end - 1].strip():
            end -= 1
        found = parsed("\n".join(lines[:end]))
        if end == 0 or isinstance(found, ast.Module):
            return end
        place = found.lineno if isinstance(found, SyntaxError) and found.lineno else end
        end = min(place, end) - 1
        if end <= 0:
            return 0
    return 0


def dedented(text: str) -> str:
    """Return a text without common indentation, tabs, and blank lines around it."""
    return textwrap.dedent(text.expandtabs(4)).strip("\n")


def repaired(text: str, language: str = "") -> tuple[str, tuple[str, ...]]:
    """Return a block with certain faults repaired, and a note for each repair.

    Args:
        text: the block.
        language: the language that its author gives.
    """
    notes: list[str] = []
    if parses(text) and language != "diff":
        return text, ()
    if language == "diff":
        text = _new_side(text)
        notes.append("the new side of a diff was taken")
    if any(map(_PROMPT.match, text.split("\n"))):
        text = _without_prompts(text)
        notes.append("prompts and printed results were removed")
    plain = text.replace("\u00a0", " ").replace("“", '"').replace("”", '"').replace("‘", "'").replace("’", "'")
    if plain != text and not parses(text):
        text = plain
        notes.append("typographic quotes and spaces were replaced")
    if not parses(text):
        kept = [line for line in text.split("\n") if not _MAGIC.match(line)]
        if len(kept) < text.count("\n") + 1:
            text = "\n".join(kept)
            notes.append("notebook commands were removed")
    if not parses(text):
        text = "\n".join(_with_plain_dots(line) for line in text.split("\n"))
    for repair, note in (
        (_without_stray_indents, "the wrong indentation of a line was removed"),
        (_without_line_numbers, "the line numbers were removed"),
        (_without_surroundings, "text around the script was removed"),
    ):
        if not parses(text) and (better := repair(text)) is not None:
            text = better
            notes.append(note)
    return text, tuple(notes)


def _new_side(text: str) -> str:
    """Return the new side of a diff of a script; empty for a patch of other files."""
    lines = text.split("\n")
    if any(line.startswith(("diff --git", "+++ b/", "index ")) for line in lines):
        return ""
    return dedented("\n".join(line[1:] for line in lines if not line.startswith(("-", "@@", "+++", "\\ No newline"))))


def _without_prompts(text: str) -> str:
    found = (_PROMPTED.fullmatch(line) for line in text.split("\n"))
    return "\n".join(match.group(1) or "" for match in found if match)


def _with_plain_dots(line: str) -> str:
    found = _DOTS.fullmatch(line)
    return f"{found.group(1)}..." if found else line


def _without_stray_indents(text: str) -> str | None:
    """Remove up to three stray indentations at module level; ``None`` if the text has another error."""
    first, _, rest = text.strip("\n").partition("\n")
    if rest.strip() and not first.startswith(" ") and parses(straight := f"{first}\n{textwrap.dedent(rest)}"):
        return straight
    for _ in range(3):
        error = parsed(text)
        if not isinstance(error, IndentationError) or not error.lineno:
            return None
        if not any(words in str(error) for words in ("unexpected indent", "unindent does not match")):
            return None
        lines = text.split("\n")
        lines[error.lineno - 1] = lines[error.lineno - 1].lstrip()
        text = "\n".join(lines)
        if parses(text):
            return text
    return None


def _without_line_numbers(text: str) -> str | None:
    """Remove the numbers before each line; ``None`` if the lines are not numbered."""
    kept, expected = [], 1
    for line in text.strip("\n").split("\n"):
        bare = line.lstrip(" ")
        digits = bare[: len(bare) - len(bare.lstrip("0123456789"))]
        if digits != str(expected):
            return None
        kept.append(bare[len(digits) :].removeprefix(":").removeprefix("|"))
        expected += 1
    return textwrap.dedent("\n".join(kept))


def _without_surroundings(text: str) -> str | None:
    """Remove a shell's line or a file's name before a script, and its output after it; ``None`` if there are none."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if CODE_START.match(line)), None)
    if start is None:
        return None
    script = lines[start:]
    count = python_prefix(script)
    after = next((line for line in script[count:] if line.strip()), "")
    if count == 0 or (after and not _looks_like_output(after) and not _looks_like_output(script[-1])):
        return None
    return "\n".join(script[:count])


def _looks_like_output(line: str) -> bool:
    bare = line.strip()
    return bare.startswith(("$ ", "# Output", "-----", "=====", "tensor(", "output:", "Output:")) or any(
        words in bare for words in _OUTPUT
    )
