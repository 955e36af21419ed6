"""Take away what nothing uses: imports, definitions, assignments, methods, fields, annotations.

Uses are looked up by name over the whole script, to a fixpoint, so that a helper of an unused helper goes with it.
Everything goes in one question; where that changes the mismatch (an unused assignment may have had an effect) it is
halved. Leaves what is used anywhere under the same name, methods that others call by protocol, and what a decorator of
the script's own may have put into a registry.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.scope import members_read
from torchbisect.minimizer.search import Search
from torchbisect.minimizer.tree import Edit, Function, apply, walk

_CALLED_BY_OTHERS = frozenset({"forward", "backward", "setup_context", "jvp", "vmap", "training_step"})


def run(search: Search) -> None:
    """One question for the fixpoint, else for each round by halves."""
    if not search.attempt(without(search.tree)):
        while search.bisect(edits(search.tree)):
            pass
    search.bisect(_values_alone(search.tree))


def without(tree: ast.Module) -> ast.Module:
    """The tree when all of it is gone, and what was only used by that, and so on."""
    while found := edits(tree):
        tree = apply(tree, found)
    return tree


def edits(tree: ast.Module) -> list[Edit]:
    """An edit for each thing that is bound and never read, and for each annotation."""
    reads = {node.id for node in walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    attributes = {node.attr for node in members_read(walk(tree))}
    keywords = {node.arg for node in walk(tree) if isinstance(node, ast.keyword) and node.arg}
    shared = {name for node in walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    used = reads | shared | _registered(tree)
    fields = {id(item) for owner in walk(tree) if isinstance(owner, ast.ClassDef) for item in owner.body}
    found: list[Edit] = []
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            found += _members(node, attributes | keywords | reads)
        if isinstance(node, (*Function, ast.ClassDef)) and node.name not in used and id(node) not in fields:
            found.append(Edit.remove(node))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [Edit.remove(alias) for alias in node.names if _unused_import(node, alias, used)]
        elif isinstance(node, ast.Assign):
            if id(node) not in fields and all(_never_read(target, used, attributes) for target in node.targets):
                found.append(Edit.remove(node))
        elif isinstance(node, ast.AugAssign) and _never_read(node.target, used, attributes):
            found.append(Edit.remove(node))
        elif isinstance(node, ast.NamedExpr) and node.target.id not in used:
            found.append(Edit.of(node, node.value))
        elif (
            isinstance(node, ast.withitem) and node.optional_vars and _never_read(node.optional_vars, used, attributes)
        ):
            found.append(Edit.remove(node.optional_vars))
        elif isinstance(node, ast.ExceptHandler) and node.name and node.name not in used:
            found.append(Edit.of(node, ast.ExceptHandler(type=node.type, name=None, body=node.body)))
        found += _annotations(node)
    return found


def _values_alone(tree: ast.Module) -> list[Edit]:
    """``unread = f(x)`` as ``f(x)``: what has an effect can't go, but nobody needs its name."""
    reads = {node.id for node in walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    shared = {name for node in walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    return [
        Edit.of(node, ast.Expr(node.value))
        for node in walk(tree)
        if isinstance(node, ast.Assign) and all(_never_read(item, reads | shared, {""}) for item in node.targets)
        if all(isinstance(item, (ast.Name, ast.Tuple)) for item in node.targets)
    ]


def _registered(tree: ast.Module) -> set[str]:
    """Functions and classes that a decorator of the script puts somewhere, where something else reads that place."""
    handed = [
        (node.name, root, decorator)
        for node in walk(tree)
        if isinstance(node, (*Function, ast.ClassDef))
        for decorator in node.decorator_list
        if (root := _root(decorator)) is not None
    ]
    if not handed:
        return set()
    functions = {node.name: node for node in walk(tree) if isinstance(node, Function)}
    inside = {id(item) for _, _, decorator in handed for item in walk(decorator)}
    inside |= {id(item) for _, root, _ in handed if root in functions for item in walk(functions[root])}
    names = [node for node in walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in walk(tree) if isinstance(node, ast.ClassDef)}
    read = {node.id for node in names if id(node) not in inside and isinstance(node.ctx, ast.Load)} & bound
    found = set()
    for name, root, _ in handed:
        places = (
            {node.id for node in walk(functions[root]) if isinstance(node, ast.Name)} if root in functions else {root}
        )
        if places & read:
            found.add(name)
    return found


def _root(decorator: ast.expr) -> str | None:
    """``registry`` of ``@registry.add("name")``."""
    while isinstance(decorator, (ast.Call, ast.Attribute)):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    return decorator.id if isinstance(decorator, ast.Name) else None


def _members(owner: ast.ClassDef, used: set[str]) -> list[Edit]:
    """Methods that nobody names, and fields of plain classes that nobody reads."""
    found: list[Edit] = []
    for item in owner.body:
        if isinstance(item, Function):
            special = item.name.startswith("__") and item.name.endswith("__")
            if not special and item.name not in used and item.name not in _CALLED_BY_OTHERS:
                found.append(Edit.remove(item))
        elif isinstance(item, (ast.AnnAssign, ast.Assign)):
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            if all(isinstance(target, ast.Name) and target.id not in used for target in targets):
                found.append(Edit.remove(item))
    return found


def _unused_import(node: ast.Import | ast.ImportFrom, alias: ast.alias, used: set[str]) -> bool:
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return True
    return alias.name != "*" and (alias.asname or alias.name.split(".")[0]) not in used


def _never_read(target: ast.expr, used: set[str], attributes: set[str]) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(_never_read(item, used, attributes) for item in target.elts)
    if isinstance(target, ast.Starred):
        return _never_read(target.value, used, attributes)
    if isinstance(target, ast.Name):
        return target.id not in used
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return target.attr not in attributes
    return False


def _annotations(node: ast.AST) -> list[Edit]:
    if isinstance(node, ast.arg) and node.annotation is not None:
        return [Edit.remove(node.annotation)]
    if isinstance(node, Function):
        inner = [
            Edit.of(item, ast.Assign([item.target], item.value) if item.value else None)
            for item in walk(node)
            if isinstance(item, ast.AnnAssign) and hasattr(item, "lineno")
        ]
        return inner + ([Edit.remove(node.returns)] if node.returns is not None else [])
    return []
