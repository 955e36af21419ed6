"""Identify an edit by its place and its effect, whatever else changes, so that one that failed is not tried again."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

from torchbisect.minimizer.syntax.edits import Edit, Replacement
from torchbisect.minimizer.syntax.tree import Function, children, walk

_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


def edit_keys(tree: ast.Module) -> Callable[[Edit], str]:
    """Return a function that gives a text for each edit of a tree.

    An edit that failed in a statement mostly fails again, also after something else in the statement has changed: a
    class that is needed stays needed when it has lost a method. So the place is told by the function around the
    statement and by what the statement starts with, and the effect by the parts that change. Both are the same in the
    tree after other edits. Equal statements of one function are counted.
    """
    owners: dict[int, ast.AST] = {}
    places: dict[int, str] = {id(tree): ""}
    counts: Counter[str] = Counter()

    def own(node: ast.AST, statement: ast.AST, around: str) -> None:
        if isinstance(node, ast.stmt):
            statement, place = node, f"{around} {_start(node)}"
            counts[place] += 1
            places[id(node)] = f"{place} #{counts[place]}"
            if isinstance(node, (*Function, ast.ClassDef)):
                around = f"{around}.{node.name}"
        owners[id(node)] = statement
        for child in children(node):
            own(child, statement, around)

    own(tree, tree, "")

    def key(edit: Edit) -> str:
        known = [owners[id(node)] for node, _ in edit.changes if id(node) in owners]
        where = "\n".join(places[id(owner)] for owner in known)
        return f"{where}\n" + "\n".join(f"{_changed(old, new)} -> {_effect(old, new)}" for old, new in edit.changes)

    return key


def _changed(old: ast.AST, new: Replacement) -> str:
    """Return what tells a changed node from others: its text, or only its start for a statement that goes.

    A statement that the mismatch needs is still needed when a part of it has become smaller.
    """
    return _start(old) if new is None and isinstance(old, ast.stmt) else _described(old)


def _start(node: ast.stmt) -> str:
    """Return what a statement starts with: its header, its target, or the function that it calls."""
    if isinstance(node, ast.Assign):
        return " = ".join(map(ast.unparse, node.targets))
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return ast.unparse(node.target)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func)
    if isinstance(node, (*Function, ast.ClassDef)):
        return f"def {node.name}"
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return f"for {ast.unparse(node.target)}"
    return type(node).__name__


def _described(node: ast.AST) -> str:
    """Return the text of a node; of a block of statements only its start."""
    if isinstance(node, ast.stmt) and any(getattr(node, name, None) for name in _BLOCKS):
        return _start(node)
    return ast.dump(node)


def _effect(old: ast.AST, new: Replacement) -> str:
    """Return what takes a node's place; of the node's own blocks only their names."""
    if new is None:
        return "nothing"
    blocks: dict[int, str] = {}
    if isinstance(old, ast.stmt):
        for name in _BLOCKS:
            blocks.update((id(item), name) for item in getattr(old, name, None) or ())
    items = new if isinstance(new, list) else [new]
    parts = [blocks.get(id(item)) or _described(item) for item in items]
    inside = {id(item) for item in walk(old)} if isinstance(old, ast.stmt) else set()
    parts = [
        part if id(item) not in inside or id(item) in blocks else f"own {part}" for item, part in zip(items, parts)
    ]
    return "; ".join(dict.fromkeys(parts))
