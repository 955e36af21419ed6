"""The data on standard input, for a script that reads them: read once, and the same in every run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from torchbisect.containers.store.disk import format_bytes
from torchbisect.core.python_text import parse_or_none

#: The most bytes of data; they are copied for each run, as the files of the script are.
MOST_BYTES = 64 << 20
_NAMES = frozenset({"stdin", "fileinput", "__stdin__"})
_PATHS = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


def reads_input(texts: Iterable[str], arguments: Sequence[str] = ()) -> bool:
    """Return True if a script or its modules may read standard input; ``-`` as an argument stands for it."""
    return "-" in arguments or any(_reads_input(text) for text in texts)


def _reads_input(text: str) -> bool:
    if not any(word in text for word in ("stdin", "fileinput", "input", "open(0", "fd/0", "read(0")):
        return False
    tree = parse_or_none(text)
    return tree is not None and any(_names_input(node) for node in ast.walk(tree))


def _names_input(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _NAMES
    if isinstance(node, ast.alias):
        return node.name in _NAMES
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in _PATHS
    if not isinstance(node, ast.Call):
        return False
    called, first = node.func, node.args[0] if node.args else None
    if isinstance(called, ast.Name) and called.id == "input":
        return True
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    is_zero = isinstance(first, ast.Constant) and type(first.value) is int and first.value == 0
    return is_zero and name in ("open", "fdopen", "read", "FileIO")


def typed_input_notes(data: bytes | None) -> tuple[str, ...]:
    """Return lines for the reader about the data that every run gets."""
    if data is None:
        return ()
    if not data:
        return ("the script reads standard input, which is empty",)
    return (f"every run gets the same standard input ({format_bytes(len(data))}): give it to the command again",)
