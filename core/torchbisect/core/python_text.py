"""Parse Python text, one thread at a time.

Up to 3.11.7 ``ast.parse`` raises ``SystemError`` ("AST constructor recursion depth mismatch") now and then where two
threads parse at once, as both count in one place (python/cpython#106905).
"""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.RLock()


def parse_python(text: str, name: str = "<unknown>") -> ast.Module:
    """Return the tree of a script's text; ``name`` is that of its file.

    Raises ``SyntaxError`` or, for null bytes, ``ValueError``.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(text, name)


def parse_or_none(text: str) -> ast.Module | None:
    """Return the tree of a text; ``None`` for one that is not Python, or is nested too deeply to parse."""
    try:
        return parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_expression(text: str) -> ast.expr:
    """Return the tree of an expression's text. Raises as ``parse_python`` does."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode="eval").body
