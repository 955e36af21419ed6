"""Take away what did not run.

Most of a training script is options that were off, error messages and fallbacks. The trace says which lines ran, so
all of it can go in one question. What is left is straight-line code more often than not: a branch that was always
taken stands alone. Leaves the branches that went both ways, and everything when there is no trace.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.tree import Function


def run(search: ReductionSearch) -> None:
    """One question for all of it; halves if that fails."""
    if search.trace is not None and search.trace.lines:
        search.delta_debug(edits(search.tree, search.trace.lines))


def edits(tree: ast.Module, lines: frozenset[int]) -> list[Edit]:
    """An edit for each outermost statement, branch, handler or function body that did not run."""
    return _block(tree.body, lines)


def _block(statements: list[ast.stmt], lines: frozenset[int]) -> list[Edit]:
    found: list[Edit] = []
    for statement in statements:
        found += _statement(statement, lines) if _ran(statement, lines) else [Edit.remove(statement)]
    return found


def _statement(node: ast.stmt, lines: frozenset[int]) -> list[Edit]:
    if isinstance(node, ast.If):
        body, orelse = _any_ran(node.body, lines), _any_ran(node.orelse, lines)
        if body != orelse:
            taken = node.body if body else node.orelse
            return [Edit.of(node, list[ast.AST](taken)), *_block(taken, lines)]
        return _block(node.body, lines) + _block(node.orelse, lines) if body else [Edit.remove(node)]
    if isinstance(node, Function):
        return _block(node.body, lines) if _any_ran(node.body, lines) else [Edit.remove(item) for item in node.body]
    if isinstance(node, ast.Try):
        inner = _block(node.body + node.orelse + node.finalbody, lines)
        if not any(_any_ran(handler.body, lines) for handler in node.handlers):
            return [Edit.of(node, [*node.body, *node.orelse, *node.finalbody]), *inner]
        return inner + [edit for handler in node.handlers for edit in _block(handler.body, lines)]
    found: list[Edit] = []
    for name in ("body", "orelse"):
        found += _block(getattr(node, name, None) or [], lines)
    for case in getattr(node, "cases", []):
        found += _block(case.body, lines)
    return found


def _ran(node: ast.stmt, lines: frozenset[int]) -> bool:
    """Whether a line of the statement ran, of a compound one any line at all; statements that have none did run."""
    first = getattr(node, "lineno", 0)
    if not first or isinstance(node, (ast.Global, ast.Nonlocal)):
        return True
    first = min([first, *(item.lineno for item in getattr(node, "decorator_list", []))])
    return any(line in lines for line in range(first, (node.end_lineno or first) + 1))


def _any_ran(statements: list[ast.stmt], lines: frozenset[int]) -> bool:
    return any(_ran(statement, lines) for statement in statements)
