"""Tell from the text of a script if it looks at files, and which it names."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from torchbisect.core.python_text import parse_or_none

# Words of scripts that look at files. One too many costs a copy; one too few costs the script its data.
_LOOKS = re.compile(
    r"sys\.path|open|load|read|Path|glob|listdir|scandir|walk|exists|stat\(|subprocess|\bsystem\(|popen|spawn|exec|"
    r"importlib|runpy|__import__|from_file|fromfile|memmap|CDLL|chdir|getcwd|__file__|from_pretrained|\bDataset[.(]|"
    r"Folder|argv|getsource"
)
# Words of scripts that look at none, though they contain one that does.
_NO_LOOK = re.compile(
    r"thread|spread|ready|reading|readout|loader|payload|workload|overload|load_state_dict|opened|opening|open_\b|"
    r"upload|\bloads\b|Pure(?:Posix|Windows)?Path|global|execut",
    re.IGNORECASE,
)
# Ways to name the folder above.
_ABOVE = re.compile(r"(?:\.\.[/\\]?)+|(?:\.parent\b)+|\.parents\[([0-9]{1,3})\]|pardir|(?:dirname\(\s*(?:\w+\.)*)+")


def looks_at_files(texts: Sequence[str]) -> bool:
    """Return True if a script may look at files: one of its texts has a word that does, outside comments."""
    return any(_LOOKS.search(_NO_LOOK.sub(" ", _without_comments(text))) for text in texts)


def named_parts(texts: Sequence[str], arguments: Sequence[str]) -> frozenset[str]:
    """Return the parts of every path that the texts and the arguments may name."""
    found: set[str] = set()
    for text in texts:
        if "load_dotenv" in text or "dotenv_values" in text:
            found.add(".env")
        tree = parse_or_none(text)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 4096:
                found.update(re.split(r"[\s/\\=,:]+", node.value))
    for argument in arguments:
        found.update(re.split(r"[/\\=,:]+", argument))
    return frozenset(found - {"", ".", ".."})


def levels_above(texts: Sequence[str]) -> int:
    """Return how many folders above its own a script names at most."""
    levels = 0
    for text in texts:
        for match in _ABOVE.finditer(text):
            words = match.group()
            steps = max(words.count(".."), words.count(".parent") - 1, words.count("dirname") - 1)
            levels = max(levels, steps, int(match.group(1)) if match.group(1) else 0, int("pardir" in words))
    return levels


def _without_comments(text: str) -> str:
    """Return a text without comments and docstrings; unchanged if it is not Python."""
    tree = parse_or_none(text)
    if tree is None:
        return text
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    try:
        return ast.unparse(tree)
    except (ValueError, RecursionError):
        return text


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
