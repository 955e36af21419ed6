"""A function or a method that is called in one place gives way to its body there.

Helpers, factories and ``main`` are how a program is laid out, not what a bug needs; once they are inlined, deletion
and substitution see one straight line. Arguments that are names or constants are put in place, others are assigned
first; local names that would clash get a number. A method's name has to be its own in the whole script, since nothing
says whose object it is called on. Leaves functions that are called in several places, that return early, or that are
generators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchbisect.minimizer.passes import remove_unused
from torchbisect.minimizer.search import Search
from torchbisect.minimizer.syntax.scope import bound_in, enclosing, members_read, parameters, references
from torchbisect.minimizer.syntax.tree import (
    Comprehension,
    Edit,
    Function,
    apply,
    children,
    copied,
    nodes,
    parents,
    walk,
)


def run(search: Search) -> None:
    """All in one question, since a bug rarely minds; else one after the other. Each may grow the tree a little."""
    whole, count, room = search.tree, 0, 2 * nodes(search.tree)
    while nodes(whole) < room and (found := next(inlined(whole), None)) is not None:
        whole, count = found[1], count + 1
    if count > 1 and (search.attempt(whole) or search.venture(whole, remove_unused.run, 6)):
        return
    tried: set[str] = set()
    while True:
        for name, tree in inlined(search.tree):
            key = name + ast.dump(tree)
            if key in tried:
                continue
            tried.add(key)
            if search.attempt(tree) or search.venture(tree, remove_unused.run, 6):
                break
        else:
            return


def inlined(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Each function that can be inlined, with the tree in which it is."""
    for function in [node for node in walk(tree) if isinstance(node, ast.FunctionDef)]:
        site = _site(tree, function)
        if site is None:
            continue
        edit = _edit(tree, function, site)
        if edit is not None:
            yield function.name, apply(tree, [edit, Edit.remove(function)])


@dataclass(frozen=True)
class _Site:
    """The one call of a function: the call, its statement, the scope that holds it; what a method is called on."""

    call: ast.Call
    statement: ast.stmt
    scope: ast.AST
    owner: ast.expr | None = None


def _site(tree: ast.Module, function: ast.FunctionDef) -> _Site | None:
    """Where the function is called, if it is named nowhere else and statements can take the call's place."""
    if function.decorator_list or not _straight(function):
        return None
    above = parents(tree)
    method = isinstance(above.get(id(function)), ast.ClassDef)
    named = _mentions(tree, function) if method else references(enclosing(above, function), function.name)
    if len(named) != 1:
        return None
    call = above.get(id(named[0]))
    if not isinstance(call, ast.Call) or call.func is not named[0]:
        return None
    owner = named[0].value if isinstance(named[0], ast.Attribute) else None
    node: ast.AST = call
    while not isinstance(node, ast.stmt):
        if isinstance(node, (ast.Lambda, *Comprehension)):
            return None
        node = above[id(node)]
    if isinstance(node, (ast.While, *Function, ast.ClassDef)):
        return None
    scope: ast.AST = node
    while not isinstance(scope, (ast.Module, *Function, ast.ClassDef)):
        scope = above[id(scope)]
    return None if scope is function or isinstance(scope, ast.ClassDef) else _Site(call, node, scope, owner)


def _mentions(tree: ast.Module, method: ast.FunctionDef) -> Sequence[ast.expr]:
    """Where a method is named, if it can only be this one and what it is called on may be written several times."""
    name, nodes = method.name, walk(tree)
    others = [node for node in nodes if isinstance(node, Function) and node.name == name and node is not method]
    own = any(isinstance(node, ast.Name) and node.id in ("super", "__class__") for node in walk(method))
    if others or own or name.startswith("__") or name == "forward" or not (method.args.posonlyargs or method.args.args):
        return []
    found = [node for node in members_read(nodes) if node.attr == name]
    owners: list[ast.expr] = [node.value for node in found]
    while any(isinstance(owner, ast.Attribute) for owner in owners):
        owners = [owner.value if isinstance(owner, ast.Attribute) else owner for owner in owners]
    return found if all(isinstance(owner, ast.Name) for owner in owners) else []


def _straight(function: ast.FunctionDef) -> bool:
    """Whether it returns at its end or not at all, and shares no names with the scopes round it by declaration."""
    for node in walk(function):
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)):
            return False
        if isinstance(node, ast.Return) and node is not function.body[-1] and _returns_from(function, node):
            return False
    return function.args.kwarg is None


def _returns_from(function: ast.FunctionDef, wanted: ast.Return) -> bool:
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if node is wanted:
            return True
        if not isinstance(node, (*Function, ast.Lambda, ast.ClassDef)):
            stack.extend(children(node))
    return False


def arguments_of(
    function: ast.FunctionDef | ast.Lambda, call: ast.Call, *, skip: int = 0
) -> dict[str, ast.expr] | None:
    """What each parameter is bound to by a call, defaults included; ``None`` where that can't be read off."""
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
    found |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
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


def _edit(tree: ast.Module, function: ast.FunctionDef, site: _Site) -> Edit | None:
    bound = arguments_of(function, site.call, skip=site.owner is not None)
    if bound is None:
        return None
    if site.owner is not None:
        bound = {parameters(function.args)[0].arg: site.owner, **bound}
    assigned = bound_in(function.body)
    names = names_of(site.scope if not isinstance(site.scope, ast.Module) else tree, but=function)
    renames = {name: fresh(name, names) for name in sorted((assigned | set(bound)) & names)}
    before: list[ast.AST] = []
    direct: dict[str, ast.expr] = {}
    for name, value in bound.items():
        if (value is site.owner or isinstance(value, (ast.Name, ast.Constant))) and name not in assigned:
            direct[name] = value
        else:
            before.append(ast.Assign(targets=[ast.Name(id=renames.get(name, name), ctx=ast.Store())], value=value))
    body = [substituted(statement, renames, direct) for statement in function.body]
    result: ast.expr = ast.Constant(None)
    if body and isinstance(body[-1], ast.Return):
        last = body.pop()
        assert isinstance(last, ast.Return)
        result = last.value or result
    statements: list[ast.AST] = [*before, *body]
    if isinstance(site.statement, ast.Expr) and site.statement.value is site.call:
        return Edit.of(site.statement, [*statements, ast.Expr(result)])
    return Edit(((site.statement, [*statements, site.statement]), (site.call, result)))


def names_of(scope: ast.AST, *, but: ast.AST | None = None) -> set[str]:
    """Every name in a scope but those inside one definition."""
    found: set[str] = set()
    stack: list[ast.AST] = [scope]
    while stack:
        node = stack.pop()
        if node is but:
            continue
        for field in ("id", "name", "arg", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str) and not isinstance(node, ast.keyword):
                found.add(value.split(".")[0])
        stack.extend(children(node))
    return found


def fresh(name: str, taken: set[str]) -> str:
    """The name itself, or with the first number from two on that isn't taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"


def substituted(node: ast.stmt, renames: dict[str, str], direct: dict[str, ast.expr]) -> ast.stmt:
    """A copy with names exchanged for names and for expressions; inner scopes that bind a name themselves keep it."""
    new = _Substitute(renames, direct).visit(copied(node))
    assert isinstance(new, ast.stmt)
    return new


class _Substitute(ast.NodeTransformer):
    def __init__(self, renames: dict[str, str], direct: dict[str, ast.expr]) -> None:
        self.renames = renames
        self.direct = direct

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.direct and isinstance(node.ctx, ast.Load):
            return copied(self.direct[node.id])
        node.id = self.renames.get(node.id, node.id)
        return node

    def _inner(self, node: ast.FunctionDef | ast.Lambda) -> ast.AST:
        own = {item.arg for item in parameters(node.args)}
        body = node.body if isinstance(node.body, list) else [node.body]
        own |= bound_in(body) if isinstance(node, ast.FunctionDef) else set()
        inner = _Substitute(
            {name: new for name, new in self.renames.items() if name not in own},
            {name: new for name, new in self.direct.items() if name not in own},
        )
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.visit(item) for item in node.decorator_list]
            node.name = self.renames.get(node.name, node.name)
            node.body = [inner.visit(item) for item in node.body]
        else:
            node.body = inner.visit(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._inner(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._inner(node)
