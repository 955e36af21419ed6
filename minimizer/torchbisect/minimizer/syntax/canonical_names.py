"""The form of a script that is the same whatever its own names are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.syntax.tree import Function, text_of, walk


def canonical_text(text: str) -> str:
    """Return a script with its own names replaced by their numbers, in the order in which the names first occur.

    Names that may also be meant by an attribute, a keyword, a string or an import stay as they are.
    """
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    numbers: dict[str, str] = {}
    own = set(_bound(tree)) - set(_meant_elsewhere(tree))
    for node in walk(tree):
        for field in ("id", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name in own and not isinstance(node, (ast.keyword, ast.alias)):
                setattr(node, field, numbers.setdefault(name, f"_{len(numbers)}_"))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [numbers.setdefault(name, f"_{len(numbers)}_") if name in own else name for name in node.names]
    return text_of(tree)


def _bound(tree: ast.Module) -> Iterator[str]:
    """Return the names that assignments, parameters and definitions bind."""
    for node in walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (*Function, ast.ClassDef)):
            yield node.name


def _meant_elsewhere(tree: ast.Module) -> Iterator[str]:
    for node in walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.split(".")[0]
        elif isinstance(node, ast.ClassDef):
            yield from (item.name for item in node.body if isinstance(item, Function))
