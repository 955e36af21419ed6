"""All names that a tree contains, and new names that clash with none of them."""

from __future__ import annotations

import ast
from collections.abc import Collection

from torchbisect.minimizer.syntax.scope import local_names
from torchbisect.minimizer.syntax.tree import children, walk

SHORT_NAMES = ("x", "y", "z", "w")
"""Names that people give to tensors in a short script, in the order of preference."""


def all_names(scope: ast.AST, *, but: ast.AST | None = None) -> set[str]:
    """Return every name that is written in a tree, whatever it stands for.

    Args:
        scope: the tree.
        but: a definition whose names are left out.
    """
    found: set[str] = set()
    stack: list[ast.AST] = [scope]
    while stack:
        node = stack.pop()
        if node is but:
            continue
        for field in ("id", "name", "arg", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str) and not isinstance(node, ast.keyword):
                found.add(value.split(".")[0])
        stack.extend(children(node))
    return found


def variable_names(function: ast.FunctionDef) -> set[str]:
    """Return the parameters of a function, the names that it binds, and every name that is used inside it."""
    return local_names(function) | {node.id for node in walk(function) if isinstance(node, ast.Name)}


def fresh_name(name: str, taken: Collection[str]) -> str:
    """Return the name itself, or with the first number from 2 on that is not taken: ``x``, ``x2``, ``x3``."""
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"


def short_name(taken: Collection[str]) -> str:
    """Return the first of ``SHORT_NAMES`` that is not taken, else a numbered ``x``."""
    return next((name for name in SHORT_NAMES if name not in taken), None) or fresh_name("x", taken)
