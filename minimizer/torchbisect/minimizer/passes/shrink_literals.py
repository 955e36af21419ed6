"""Delete rows, columns and further slices of the tensors that are written out.

Before and after::

    f(torch.tensor([[3, -7], [9, 64]]), torch.tensor([[-2, 5], [1, -64]]))

    f(torch.tensor([[64]]), torch.tensor([[-64]]))

A call may need the very numbers that it had, of which one matters. Tensors that are combined have to keep the same
shape, so a slice goes from all that have the same size in its dimension, counted from the last one as in broadcasting.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.names import called_name
from torchbisect.minimizer.syntax.tree import preorder


def run(search: ReductionSearch) -> None:
    """Delete slices in halves, those of the outermost dimension first."""
    dimensions = max((len(shape) for shape in map(_shape, _literals(search.tree))), default=0)
    for dimension in range(dimensions, 0, -1):
        sizes = {shape[-dimension] for shape in map(_shape, _literals(search.tree)) if len(shape) >= dimension}
        for size in sorted(sizes, reverse=True):
            if size > 1:
                search.delta_debug(_slices(search.tree, dimension, size))


def _slices(tree: ast.Module, dimension: int, size: int) -> list[Edit]:
    """Return the removal of each slice of the tensors with this size in a dimension, counted from the last."""
    found: list[list[ast.AST]] = [[] for _ in range(size)]
    for literal in _literals(tree):
        shape = _shape(literal)
        if len(shape) >= dimension and shape[-dimension] == size:
            for row in _lists_at(literal, len(shape) - dimension):
                for number, item in enumerate(row.elts):
                    found[number].append(item)
    return [Edit.remove(*items) for items in found]


def _literals(tree: ast.Module) -> list[ast.List]:
    """Return the lists of numbers that tensors are made from: of one length on each level."""
    calls = [node for node in preorder(tree) if isinstance(node, ast.Call) and called_name(node.func) == "tensor"]
    return [call.args[0] for call in calls if call.args and isinstance(call.args[0], ast.List) and _shape(call.args[0])]


def _shape(literal: ast.expr) -> tuple[int, ...]:
    """Return the shape of a nested list; empty for a number, and for a list whose items differ in shape."""
    if not isinstance(literal, ast.List) or not literal.elts:
        return ()
    inner = {_shape(item) for item in literal.elts}
    nested = {isinstance(item, ast.List) for item in literal.elts}
    return (len(literal.elts), *inner.pop()) if len(inner) == len(nested) == 1 else ()


def _lists_at(literal: ast.List, depth: int) -> list[ast.List]:
    """Return the lists inside so many others."""
    found = [literal]
    for _ in range(depth):
        found = [item for row in found for item in row.elts if isinstance(item, ast.List)]
    return found
