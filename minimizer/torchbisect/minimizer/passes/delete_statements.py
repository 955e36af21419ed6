"""Delete statements, level by level from the outermost, in halves and from the back.

The classic: it needs to know nothing of what the statements mean. Outer levels first, since one statement there may
be half of the script; from the back, since uses stand behind definitions. Leaves what the mismatch needs, one by one.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.tree import children


def run(search: ReductionSearch) -> None:
    """Every level in turn."""
    depth = 0
    while _delete(search, depth):
        depth += 1


def outermost(search: ReductionSearch) -> None:
    """Those of the script itself: a program's main function often compares two whole runs where one would do."""
    _delete(search, 0)


def _delete(search: ReductionSearch, depth: int) -> bool:
    """Delete what can be of one level; whether there is that level."""
    level = _level(search.tree, depth)
    search.delta_debug([Edit.remove(statement) for statement in level])
    return bool(level)


def _level(tree: ast.Module, depth: int) -> list[ast.stmt]:
    """The statements inside ``depth`` others, in the order of the text."""
    found: list[ast.stmt] = []

    def collect(node: ast.AST, around: int) -> None:
        for child in children(node):
            if isinstance(child, ast.stmt) and around == depth:
                if not isinstance(child, ast.Pass):
                    found.append(child)
            else:
                collect(child, around + isinstance(child, ast.stmt))

    collect(tree, 0)
    return found
