"""Short conventional names: ``x``, ``y``, ``z`` and other letters, functions ``f`` and ``g``, classes ``Model``.

A name that says what a tensor meant in the user's program says nothing in a bug report. All in one question, since
only a bug that depends on a name can tell; one by one if it does. Leaves names of imports, of attributes, and of what
a class is called by from outside.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply, copied
from torchbisect.minimizer.syntax.scope import parameters
from torchbisect.minimizer.syntax.tree import Function, preorder, walk

_VALUES = ("x", "y", "z", "w", "a", "b", "c", "d", "e", "u", "v", "p", "q", "r", "s", "t")
_FUNCTIONS = ("f", "g", "h", "k")
_CLASSES = ("Model", "A", "B", "C", "D")


def run(search: ReductionSearch) -> None:
    """All together, else one by one."""
    names = chosen(search.tree)
    if names and not search.attempt_rewrite(renamed(search.tree, names)):
        for old, new in names.items():
            if new not in _all_names(search.tree):
                search.attempt_rewrite(renamed(search.tree, {old: new}))


def chosen(tree: ast.Module) -> dict[str, str]:
    """A new name for each name that the script binds, in the order in which they come."""
    kinds = dict(_bound(tree))
    imports = [node for node in walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    called = {item.arg for node in walk(tree) if isinstance(node, ast.Call) for item in node.keywords}
    kept = {name for name in _all_names(tree) if name not in kinds} | imported
    found: dict[str, str] = {}
    for name, pool in kinds.items():
        if name in imported or name in called or name.startswith("__"):
            continue
        taken = kept | set(found.values())
        free = [new for new in pool if new not in taken]
        if name in pool and name not in found.values():
            found[name] = name
        elif free and not keyword.iskeyword(free[0]):
            found[name] = free[0]
    return {old: new for old, new in found.items() if old != new} if len(set(found.values())) == len(found) else {}


def _bound(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    methods = {id(item) for owner in walk(tree) if isinstance(owner, ast.ClassDef) for item in owner.body}
    for node in preorder(tree):
        if isinstance(node, Function):
            if id(node) not in methods:
                yield node.name, _FUNCTIONS
            names = [item.arg for item in parameters(node.args)]
            for name in names:
                if not (id(node) in methods and name in ("self", "ctx", "cls")):
                    yield name, _VALUES
        elif isinstance(node, ast.Lambda):
            yield from ((item.arg, _VALUES) for item in parameters(node.args))
        elif isinstance(node, ast.ClassDef):
            yield node.name, _CLASSES
            for item in node.body:
                if isinstance(item, (ast.Assign, ast.AnnAssign)):
                    return
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, _VALUES


def _all_names(tree: ast.Module) -> set[str]:
    return {node.id for node in walk(tree) if isinstance(node, ast.Name)} | {
        node.arg for node in walk(tree) if isinstance(node, ast.arg)
    } | {node.name for node in walk(tree) if isinstance(node, (*Function, ast.ClassDef))}  # fmt: skip


def renamed(tree: ast.Module, names: dict[str, str]) -> ast.Module:
    """The tree with names exchanged, wherever they are bound."""
    changes: list[tuple[ast.AST, Replacement]] = []
    methods = {id(item) for owner in walk(tree) if isinstance(owner, ast.ClassDef) for item in owner.body}
    new = copied(tree)
    for old_node, node in zip(preorder(tree), preorder(new)):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
        elif isinstance(node, (*Function, ast.ClassDef)) and id(old_node) not in methods:
            node.name = names.get(node.name, node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [names.get(name, name) for name in node.names]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            node.name = names.get(node.name, node.name)
    return apply(new, [Edit(tuple(changes))])
