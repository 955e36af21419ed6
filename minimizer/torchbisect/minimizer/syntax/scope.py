"""The names that scopes bind, and the places where those names are used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchbisect.minimizer.syntax.tree import Comprehension, children, walk

CONTAINER_METHODS = frozenset(name for kind in (list, dict, set, str) for name in dir(kind))
"""Attributes and methods of lists, dictionaries, sets and strings."""


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that these nodes bind in their own scope; scopes of inner functions and classes are left out."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            stack.extend(node.decorator_list)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, Comprehension):
            # A walrus in a comprehension binds outside it; its own targets stay inside.
            found |= {item.target.id for item in walk(node) if isinstance(item, ast.NamedExpr)}
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {name.asname or name.name.split(".")[0] for name in node.names}
            continue
        else:
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                found.add(name)
        stack.extend(children(node))
    return found


def references(scope: ast.AST, name: str) -> list[ast.Name]:
    """Return the uses of a name in the scope that binds it.

    An inner function that binds the same name has a variable of its own, so uses in it do not count.

    Args:
        scope: the module or function that binds the name.
        name: the name.
    """
    found: list[ast.Name] = []
    stack = children(scope)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.id == name:
            found.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and _binds(node, name):
            stack += [*node.args.defaults, *(item for item in node.args.kw_defaults if item is not None)]
            stack += getattr(node, "decorator_list", [])
        else:
            stack += children(node)
    return found


def local_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Return the parameters of a function and the names that its body binds."""
    return {item.arg for item in parameters(function.args)} | bound_names(_body_of(function))


def _binds(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> bool:
    return name in local_names(function) and name not in released_names(_body_of(function))


def _body_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Sequence[ast.AST]:
    return [function.body] if isinstance(function, ast.Lambda) else function.body


def released_names(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that a function declares ``global`` or ``nonlocal``."""
    declared = (ast.Global, ast.Nonlocal)
    return {name for item in body for node in in_own_scope(item) if isinstance(node, declared) for name in node.names}


def enclosing(above: Mapping[int, ast.AST], node: ast.AST) -> ast.AST:
    """Return the module or function in which a definition binds its name; ``above`` is ``tree.parents``."""
    outer = above[id(node)]
    while not isinstance(outer, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
        outer = above[id(outer)]
    return outer


def object_attributes(nodes: Iterable[ast.AST]) -> Iterator[ast.Attribute]:
    """Yield the attributes that are read and may belong to an object of the script's own classes.

    An attribute of an imported name belongs to a library: ``torch.compile`` is not a use of a field ``compile``.
    """
    nodes = list(nodes)
    imported = _imported(nodes)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if not (isinstance(root, ast.Name) and root.id in imported):
                yield node


def imported_names(tree: ast.AST) -> set[str]:
    """Return the names that imports bind anywhere in a tree."""
    return _imported(walk(tree))


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return all parameters of a function, in order."""
    found = [*arguments.posonlyargs, *arguments.args]
    found += [arguments.vararg] if arguments.vararg else []
    found += arguments.kwonlyargs
    return found + ([arguments.kwarg] if arguments.kwarg else [])


def in_own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants that lie in the same scope."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(children(item))
