"""The names that scopes bind, their uses, and the parameters that calls bind."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.tree import Comprehension, children, walk

CONTAINER_METHODS = frozenset(name for kind in (list, dict, set, str) for name in dir(kind))
"""Attributes and methods of lists, dictionaries, sets and strings."""
_BUILTINS = frozenset(dir(builtins))


def calls_python(function: ast.expr) -> bool:
    """Tell whether what is called is one of Python's own functions or classes, or a method of a container.

    ``sum(x)`` and ``x.append(1)`` are, ``x.sum()`` is not.
    """
    if isinstance(function, ast.Attribute):
        return function.attr in CONTAINER_METHODS
    return isinstance(function, ast.Name) and function.id in _BUILTINS


def variables_in(tree: ast.AST) -> set[str]:
    """Return the names of the variables that a tree reads, sets or deletes, in whatever scope."""
    return {node.id for node in walk(tree) if isinstance(node, ast.Name)}


def assigned_targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    """Return what an assignment of any form assigns to."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def bound_names(nodes: Iterable[ast.AST], *, augmented: bool = True) -> set[str]:
    """Return the names that these nodes bind in their own scope; scopes of inner functions and classes are left out.

    Without ``augmented`` those are left out that only ``+=`` and the like bind, which need a value before.
    """
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
        if isinstance(node, ast.AugAssign) and not augmented:
            stack.append(node.value)
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
    """Return the uses of a name in the scope that binds it, without those of an inner function's own variable."""
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
    return {item.arg for item in parameters(function.args)} | bound_names(body_of(function))


def _binds(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> bool:
    return name in local_names(function) and name not in released_names(body_of(function))


def body_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Sequence[ast.AST]:
    """Return the statements of a function; a lambda has its expression."""
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
    """Yield the attributes that are read of objects other than imports: ``x.compile``, not ``torch.compile``."""
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


def arguments_of(
    function: ast.FunctionDef | ast.Lambda, call: ast.Call, *, skip: int = 0
) -> dict[str, ast.expr] | None:
    """Return the expression that a call binds to each parameter, defaults included, by the parameter's name.

    Returns ``None`` where the binding cannot be read from the text. ``skip`` leaves out the first parameters, such
    as ``self``.
    """
    positional = [*function.args.posonlyargs, *function.args.args][skip:]
    if any(isinstance(item, ast.Starred) for item in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    ):
        return None
    found = {parameter.arg: value for parameter, value in zip(positional, call.args)}
    if function.args.vararg is not None:
        found[function.args.vararg.arg] = ast.Tuple(elts=call.args[len(positional) :], ctx=ast.Load())
    elif len(call.args) > len(positional):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    if function.args.kwarg is not None:
        own = {item.arg for item in [*positional, *function.args.kwonlyargs]}
        others = {name: value for name, value in given.items() if name not in own}
        given = {name: value for name, value in given.items() if name in own}
        found[function.args.kwarg.arg] = ast.Dict([ast.Constant(name) for name in others], [*others.values()])
    found |= given
    defaults = dict(
        zip([item.arg for item in positional][len(positional) - len(function.args.defaults) :], function.args.defaults)
    )
    defaults |= {
        item.arg: value for item, value in zip(function.args.kwonlyargs, function.args.kw_defaults) if value is not None
    }
    names = [item.arg for item in parameters(function.args)][skip:]
    whole = {name: found.get(name, defaults.get(name)) for name in names}
    if set(found) - set(names) or any(value is None for value in whole.values()):
        return None
    return {name: value for name, value in whole.items() if value is not None}


def without_parameter(arguments: ast.arguments, number: int) -> ast.arguments:
    """Return the parameters without the one at a position, and without its default."""
    new = copied(arguments)
    first = len(new.posonlyargs) + len(new.args) - len(new.defaults)
    if number >= first:
        del new.defaults[number - first]
    if number < len(new.posonlyargs):
        del new.posonlyargs[number]
    else:
        del new.args[number - len(new.posonlyargs)]
    return new


def only_call(tree: ast.Module, function: ast.FunctionDef) -> ast.Call | None:
    """Return the only call of a function, also through ``torch.compile``; ``None`` if there are none or several."""
    named = references(tree, function.name)
    if len(named) != 1:
        return None
    for node in walk(tree):
        if isinstance(node, ast.Call):
            through = isinstance(node.func, ast.Call) and named[0] in node.func.args
            if node.func is named[0] or through:
                return node
    return None
