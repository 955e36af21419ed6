"""Sizes and other constants towards the smallest: a ladder 1, 2, 3, 4, 8, 16.

Equal numbers go together first, since a width stands in many places that must agree, and with its multiples, since
32 may be 4 times 8; then one by one. A failure may need a vector's width or a tail, so it isn't monotone in the size,
and a binary search would go wrong: the rungs are tried from below. Never 0 where a size may be meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply_or_none
from torchbisect.minimizer.syntax.tree import preorder

LADDER = (1, 2, 3, 4, 8, 16)


def run(search: ReductionSearch) -> None:
    """All numbers to one or two, then those of each value together, then one by one."""
    for rung in (1, 2):
        edits = [Edit.of(node, ast.Constant(rung)) for node, value in _numbers(search.tree) if value > rung]
        if edits and search.attempt_edits(edits):
            break
    for wanted in sorted({value for _, value in _numbers(search.tree)}, reverse=True):
        search.attempt_first(apply_or_none(search.tree, edits) for edits in list(_together(search.tree, wanted)))
    search.scan(_options)


def _together(tree: ast.Module, wanted: int) -> Iterator[list[Edit]]:
    """What to make of all the numbers of one value, the smallest first."""
    numbers = _numbers(tree)
    same = [node for node, value in numbers if value == wanted]
    yield [Edit.of(node, ast.Constant(1)) for node in same]
    if any(value % wanted == 0 and value != wanted for _, value in numbers):
        yield [Edit.of(node, ast.Constant(value // wanted)) for node, value in numbers if value % wanted == 0]
    for rung in LADDER[1:]:
        if rung < wanted:
            yield [Edit.of(node, ast.Constant(rung)) for node in same]


def _numbers(tree: ast.Module) -> list[tuple[ast.Constant, int]]:
    """Whole numbers above one, with their values."""
    constants = [node for node in preorder(tree) if isinstance(node, ast.Constant)]
    return [(node, node.value) for node in constants if type(node.value) is int and node.value > 1]


def _options(tree: ast.Module) -> Iterator[Edit]:
    for node in preorder(tree):
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            yield Edit.of(node, node.operand)
        if isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, (float, complex)):
                rungs = [rung for rung in (0, 1) if rung == value] or [1, 2, 0]
                yield from (Edit.of(node, ast.Constant(rung)) for rung in rungs)
            elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
                yield from (Edit.of(node, ast.Constant(rung)) for rung in (1, 2) if rung < value)
