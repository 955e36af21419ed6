"""Give the elements of a dictionary, list or tuple names of their own.

Before and after::

    state = {"count": 0, "model": Net()}      count = 0
    state["count"] += 1                       model = Net()
    run(state["model"])                       count += 1
                                              run(model)

Programs keep things in containers, and what is done to an element can't be inlined or taken apart there. A container
is split if it is bound once, and each use reads or sets an element by a constant key. It stays where functions set its
elements that others read, as a name would need ``global`` there.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, Replacement
from torchbisect.minimizer.syntax.names import all_names, fresh_name
from torchbisect.minimizer.syntax.tree import Function, parents, walk


def run(search: ReductionSearch) -> None:
    """Split one container after the other."""
    search.scan(_splits)


def _splits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edit of each container that can be split."""
    above = parents(tree)
    names = [node for node in walk(tree) if isinstance(node, ast.Name)]
    parameters = {node.arg for node in walk(tree) if isinstance(node, ast.arg)}
    for binding in walk(tree):
        if not isinstance(binding, ast.Assign) or len(binding.targets) != 1:
            continue
        target, elements = binding.targets[0], _elements(binding.value)
        if not isinstance(target, ast.Name) or elements is None or target.id in parameters:
            continue
        uses = [node for node in names if node.id == target.id and node is not target]
        reads = [above[id(node)] for node in uses]
        if uses and all(_is_element(read, use) for read, use in zip(reads, uses)):
            edit = _split(tree, binding, elements, [read for read in reads if isinstance(read, ast.Subscript)], above)
            if edit is not None:
                yield edit


def _elements(value: ast.expr) -> dict[object, ast.expr] | None:
    """Return the elements of a display by their keys; ``None`` for any other expression."""
    if isinstance(value, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        return dict(zip(keys, value.values)) if None not in keys and len({*keys}) == len(keys) else None
    if isinstance(value, (ast.List, ast.Tuple)) and not any(isinstance(item, ast.Starred) for item in value.elts):
        return dict(enumerate(value.elts))
    return None


def _is_element(read: ast.AST, use: ast.Name) -> bool:
    """Tell whether a use of a container is its element under a constant key, and does not delete it."""
    return (
        isinstance(read, ast.Subscript)
        and read.value is use
        and isinstance(read.slice, ast.Constant)
        and not isinstance(read.ctx, ast.Del)
    )


def _split(
    tree: ast.Module,
    binding: ast.Assign,
    elements: dict[object, ast.expr],
    reads: list[ast.Subscript],
    above: dict[int, ast.AST],
) -> Edit | None:
    """Return the edit that binds the elements to names; ``None`` if one is set and read in different functions."""
    taken, names = all_names(tree), dict[object, str]()
    home = _function_of(binding, above)
    for read in reads:
        assert isinstance(read.slice, ast.Constant)
        key = read.slice.value
        same = [item for item in reads if isinstance(item.slice, ast.Constant) and item.slice.value == key]
        setting = {id(_function_of(item, above)) for item in same if isinstance(item.ctx, ast.Store)}
        if setting - {id(home)} and (len({id(_function_of(item, above)) for item in same}) > 1 or key in elements):
            return None
        if key not in names:
            usable = isinstance(key, str) and key.isidentifier() and not keyword.iskeyword(key)
            wanted = str(key) if usable else f"item{len(names)}"
            names[key] = fresh_name(wanted, taken)
            taken.add(names[key])
    bound: list[ast.AST] = [
        ast.Assign(targets=[ast.Name(id=names[key], ctx=ast.Store())], value=value) if key in names else ast.Expr(value)
        for key, value in elements.items()
    ]
    changes: list[tuple[ast.AST, Replacement]] = [(binding, bound or None)]
    for read in reads:
        assert isinstance(read.slice, ast.Constant)
        changes.append((read, ast.Name(id=names[read.slice.value], ctx=read.ctx)))
    return Edit(tuple(changes))


def _function_of(node: ast.AST, above: dict[int, ast.AST]) -> ast.AST:
    """Return the function or lambda around a node, or the module."""
    while not isinstance(node, (ast.Module, *Function, ast.Lambda)):
        node = above[id(node)]
    return node
