"""Delete rows, columns and further slices of the tensors that are written out.

Before and after::

    f(torch.tensor([[3, -7], [9, 64]]), torch.tensor([[-2, 5], [1, -64]]))

    f(torch.tensor([[64]]), torch.tensor([[-64]]))

A call may need the very numbers that it had, of which one matters. Tensors that are combined have to keep the same
shape, so a slice goes from all that have the same size in its dimension, counted from the last one as in broadcasting,
and where that is not enough the numbers change too that are this size: those of tensors made by their shape.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply_or_none
from torchbisect.minimizer.syntax.tensor_literals import shape_of, tensor_literals
from torchbisect.minimizer.syntax.tree import preorder, walk


def run(search: ReductionSearch) -> None:
    """Keep half of the slices while that will do, else three quarters; the outermost dimension first."""
    dimensions = max((len(shape) for shape in map(shape_of, tensor_literals(search.tree))), default=0)
    for dimension in range(dimensions, 0, -1):
        sizes = {shape[-dimension] for shape in map(shape_of, tensor_literals(search.tree)) if len(shape) >= dimension}
        for size in sorted(sizes, reverse=True):
            while size > 1 and (kept := _shrink_to_part(search, dimension, size)):
                size = kept


def _shrink_to_part(search: ReductionSearch, dimension: int, size: int) -> int:
    """Keep the first part of the slices that will do; return its size, or 0 if none does."""
    tree = search.tree
    slices, counts = _slices(tree, dimension, size), _counts(tree, size)
    edits, sizes = list[Edit](), list[int]()
    for part in _parts(size):
        gone = [node for number, items in enumerate(slices) if number not in part for node in items]
        removed: list[tuple[ast.AST, ast.AST | None]] = [(node, None) for node in gone]
        changed = [(node, ast.Constant(len(part))) for node in counts]
        for changes in (removed, [*removed, *changed]) if changed else (removed,):
            edits.append(Edit(tuple(changes)))
            sizes.append(len(part))
    place = search.attempt_first_once(edits, lambda edit: apply_or_none(tree, [edit]))
    return 0 if place is None else sizes[place]


def _parts(size: int) -> Iterator[Collection[int]]:
    """Return the slices that may be kept: one half, the other, or all but a quarter."""
    half, quarter = (size + 1) // 2, max(1, size // 4)
    yield range(half)
    yield range(size - half, size)
    if size > 3:
        for first in range(0, size - quarter + 1, quarter):
            yield [number for number in range(size) if not first <= number < first + quarter]


def _counts(tree: ast.Module, size: int) -> list[ast.AST]:
    """Return the numbers outside of such tensors that are this size."""
    inside = {id(item) for literal in tensor_literals(tree) for item in walk(literal)}
    numbers = [node for node in preorder(tree) if isinstance(node, ast.Constant) and id(node) not in inside]
    return [node for node in numbers if type(node.value) is int and node.value == size]


def _slices(tree: ast.Module, dimension: int, size: int) -> list[list[ast.AST]]:
    """Return the parts of each slice of the tensors with this size in a dimension, counted from the last."""
    found: list[list[ast.AST]] = [[] for _ in range(size)]
    for literal in tensor_literals(tree):
        shape = shape_of(literal)
        if len(shape) >= dimension and shape[-dimension] == size:
            for row in _lists_at(literal, len(shape) - dimension):
                for number, item in enumerate(row.elts):
                    found[number].append(item)
    return found


def _lists_at(literal: ast.List, depth: int) -> list[ast.List]:
    """Return the lists inside so many others."""
    found = [literal]
    for _ in range(depth):
        found = [item for row in found for item in row.elts if isinstance(item, ast.List)]
    return found
