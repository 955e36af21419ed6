"""Replace numbers by the smallest that show the mismatch.

Before and after::

    f(torch.randn(17, 32), 0.25)

    f(torch.randn(1, 4), 1)

Numbers go through a ladder: 1, 2, 3, 4, 8, 16. A mismatch may need the width of a vector register or a remainder, so it
is not monotone in the size and a binary search would go wrong; the rungs are tried from below. Equal numbers change
together first, because a width stands in many places that must agree, and with their multiples, because 32 may be 4
times 8. Then each changes alone. No number becomes 0 where it may be a size. The last rounds of a loop go too: what an
earlier one shows may be gone after them, and then the result would not fail by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply_or_none
from torchbisect.minimizer.syntax.tree import preorder

LADDER = (1, 2, 3, 4, 8, 16)
"""The numbers that are tried, in this order."""


def run(search: ReductionSearch) -> None:
    """Change all numbers to 1 or 2, then those of each value together, then one by one."""
    for rung in (1, 2):
        edits = [Edit.of(node, ast.Constant(rung)) for node, value in _numbers(search.tree) if value > rung]
        if edits and search.attempt_edits(edits):
            break
    for wanted in sorted({value for _, value in _numbers(search.tree)}, reverse=True):
        search.attempt_first(apply_or_none(search.tree, edits) for edits in list(_equal_numbers(search.tree, wanted)))
    search.scan(_number_edits)


def _equal_numbers(tree: ast.Module, wanted: int) -> Iterator[list[Edit]]:
    """Return the edits of all numbers of one value, the smallest result first."""
    numbers = _numbers(tree)
    same = [node for node, value in numbers if value == wanted]
    yield [Edit.of(node, ast.Constant(1)) for node in same]
    if any(value % wanted == 0 and value != wanted for _, value in numbers):
        yield [Edit.of(node, ast.Constant(value // wanted)) for node, value in numbers if value % wanted == 0]
    for rung in LADDER[1:]:
        if rung < wanted:
            yield [Edit.of(node, ast.Constant(rung)) for node in same]


def _numbers(tree: ast.Module) -> list[tuple[ast.Constant, int]]:
    """Return whole numbers above 1, with their values."""
    constants = [node for node in preorder(tree) if isinstance(node, ast.Constant)]
    return [(node, node.value) for node in constants if type(node.value) is int and node.value > 1]


def _number_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits of each number alone, and of each sign."""
    for node in preorder(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and len(node.args) == 1:
            count = getattr(node.args[0], "value", None)
            if isinstance(count, int) and count > 2:
                fewer = dict.fromkeys((count - count // 4, count - 1))
                yield from (Edit.of(node.args[0], ast.Constant(rung)) for rung in fewer if rung < count)
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            yield Edit.of(node, node.operand)
        if isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, (float, complex)):
                rungs = [rung for rung in (0, 1) if rung == value] or [1, 2, 0]
                yield from (Edit.of(node, ast.Constant(rung)) for rung in rungs)
            elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
                yield from (Edit.of(node, ast.Constant(rung)) for rung in (1, 2) if rung < value)
