"""Remove the statements and branches that did not run.

Before and after, if ``debug`` was false::

    if debug:
        check(batch)
    else:
        log(batch)

    log(batch)

Most of a training script is options that were off, error messages and fallbacks. The trace says which lines ran, so all
of this is removed in one question, and what is left is mostly straight-line code. Branches that went both ways stay.
Without a trace the pass does nothing.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.tree import Function


def run(search: ReductionSearch) -> None:
    """Remove all of it in one question, or in halves if that fails."""
    if search.trace is not None and search.trace.lines:
        search.delta_debug(unexecuted_edits(search.tree, search.trace.lines))


def unexecuted_edits(tree: ast.Module, lines: frozenset[int]) -> list[Edit]:
    """Return an edit for each outermost statement, branch, handler or function body that did not run."""
    return _block_edits(tree.body, lines)


def _block_edits(statements: list[ast.stmt], lines: frozenset[int]) -> list[Edit]:
    found: list[Edit] = []
    for statement in statements:
        found += _statement_edits(statement, lines) if _executed(statement, lines) else [Edit.remove(statement)]
    return found


def _statement_edits(node: ast.stmt, lines: frozenset[int]) -> list[Edit]:
    """Return the edits inside a statement that ran, or the edit that leaves the branch that ran."""
    if isinstance(node, ast.If):
        body, orelse = _any_executed(node.body, lines), _any_executed(node.orelse, lines)
        if body != orelse:
            taken = node.body if body else node.orelse
            return [Edit.of(node, list[ast.AST](taken)), *_block_edits(taken, lines)]
        return _block_edits(node.body, lines) + _block_edits(node.orelse, lines) if body else [Edit.remove(node)]
    if isinstance(node, Function):
        return (
            _block_edits(node.body, lines)
            if _any_executed(node.body, lines)
            else [Edit.remove(item) for item in node.body]
        )
    if isinstance(node, ast.Try):
        inner = _block_edits(node.body + node.orelse + node.finalbody, lines)
        if not any(_any_executed(handler.body, lines) for handler in node.handlers):
            return [Edit.of(node, [*node.body, *node.orelse, *node.finalbody]), *inner]
        return inner + [edit for handler in node.handlers for edit in _block_edits(handler.body, lines)]
    found: list[Edit] = []
    for name in ("body", "orelse"):
        found += _block_edits(getattr(node, name, None) or [], lines)
    for case in getattr(node, "cases", []):
        found += _block_edits(case.body, lines)
    return found


def _executed(node: ast.stmt, lines: frozenset[int]) -> bool:
    """Tell whether any line of a statement ran. Statements that have no line count as executed."""
    first = getattr(node, "lineno", 0)
    if not first or isinstance(node, (ast.Global, ast.Nonlocal)):
        return True
    first = min([first, *(item.lineno for item in getattr(node, "decorator_list", []))])
    return any(line in lines for line in range(first, (node.end_lineno or first) + 1))


def _any_executed(statements: list[ast.stmt], lines: frozenset[int]) -> bool:
    return any(_executed(statement, lines) for statement in statements)
