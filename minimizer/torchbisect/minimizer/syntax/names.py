"""Names in a scope, and new names that are not taken."""

from __future__ import annotations

import ast

from torchbisect.minimizer.syntax.tree import children


def names_of(scope: ast.AST, *, but: ast.AST | None = None) -> set[str]:
    """Return every name in a scope except those inside one definition."""
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


def fresh(name: str, taken: set[str]) -> str:
    """Return the name, or the name with the lowest number from two up that is not taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"
