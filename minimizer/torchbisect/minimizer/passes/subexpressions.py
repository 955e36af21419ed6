"""An expression gives way to a part of itself: ``relu(x @ w)`` to ``x @ w``, that to ``x``.

Outermost first, where the win is biggest. A call gives way to its arguments or, for a method, to the object; never to
the function that is called: a function standing where a tensor was is a different program that may fail in the same
words.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import Search
from torchbisect.minimizer.tree import Comprehension, Edit, parents, walk


def run(search: Search) -> None:
    """One by one."""
    search.scan(options)


def options(tree: ast.Module) -> Iterator[Edit]:
    """Each expression with each part that may stand for it."""
    above = parents(tree)
    modules = {alias.asname or alias.name.split(".")[0] for node in walk(tree) if isinstance(node, ast.Import)
               for alias in node.names}  # fmt: skip
    modules |= {"nn", "F"}
    for node in walk(tree):
        if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            continue
        owner = above.get(id(node))
        if isinstance(owner, ast.Call) and owner.func is node:
            continue
        for part in _parts(node, modules):
            yield Edit.of(node, part)


def _parts(node: ast.expr, modules: set[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        if not _compiles(node):
            if isinstance(node.func, ast.Attribute) and not _module(node.func.value, modules):
                yield node.func.value
            yield from (item.value if isinstance(item, ast.Starred) else item for item in node.args)
            yield from (keyword.value for keyword in node.keywords if isinstance(keyword.value, (ast.Name, ast.Call)))
    elif isinstance(node, ast.BinOp):
        yield node.left
        yield node.right
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare):
        yield node.left
        yield from node.comparators
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.Attribute):
        if not _module(node.value, modules) and not isinstance(node.value, ast.Name):
            yield node.value
    elif isinstance(node, (ast.Await, ast.NamedExpr, ast.FormattedValue)):
        yield node.value
    elif isinstance(node, Comprehension) and not isinstance(node, ast.DictComp):
        yield node.generators[0].iter


def _compiles(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "compile"


def _module(node: ast.expr, modules: set[str]) -> bool:
    """Whether a dotted name begins at an imported module."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in modules
