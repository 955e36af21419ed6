"""A module or a class becomes functions and plain names.

``model = Net(cfg)`` with ``Net.__init__`` and ``Net.forward`` becomes the lines of ``__init__`` with ``self.lin`` as
``lin``, and a function ``model(x)`` that reads them. What deletion can't do, since ``self`` ties all of it together.
Grows a little at times, so it is a venture. Leaves classes that are made in several places.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.calls import arguments_of
from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.names import all_names
from torchbisect.minimizer.syntax.scope import bound_names, enclosing, in_own_scope, parameters, references
from torchbisect.minimizer.syntax.substitution import substituted
from torchbisect.minimizer.syntax.tree import Comprehension, Function, count_nodes, parents, walk


def run(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    """All of them in one question, else each in turn."""
    whole, count, room = search.tree, 0, 2 * count_nodes(search.tree)
    while count_nodes(whole) < room and (found := next(flattened(whole), None)) is not None:
        whole, count = found, count + 1
    if count < 2 or not (search.attempt(whole) or search.pump(whole, finish, 10)):
        _one_by_one(search, finish)


def _one_by_one(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    tried: set[str] = set()
    while True:
        for tree in flattened(search.tree):
            key = ast.dump(tree)
            if key in tried:
                continue
            tried.add(key)
            if search.attempt(tree) or search.pump(tree, finish, 10):
                break
        else:
            return


def flattened(tree: ast.Module) -> Iterator[ast.Module]:
    """Each class that is made in one place, taken apart there."""
    above = parents(tree)
    for owner in walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        named = references(enclosing(above, owner), owner.name)
        made = above.get(id(named[0])) if len(named) == 1 else None
        if not isinstance(made, ast.Call) or made.func is not named[0]:
            continue
        statement: ast.AST = made
        while not isinstance(statement, ast.stmt) and not isinstance(statement, (ast.Lambda, *Comprehension)):
            statement = above[id(statement)]
        if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return)):
            continue
        changed = _apart(tree, owner, made, statement)
        if changed is not None:
            yield changed


def _apart(tree: ast.Module, owner: ast.ClassDef, made: ast.Call, statement: ast.stmt) -> ast.Module | None:
    """The tree in which the object's making gives way to its ``__init__`` and its methods as functions."""
    methods = {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is made else None
    name = target.id if isinstance(target, ast.Name) else _fresh("model", tree)
    prepared = _prepared(tree, owner, made, methods.pop("__init__", None))
    if prepared is None:
        return None
    result: list[ast.AST] = []
    for method_name, method in methods.items():
        if method.decorator_list or not method.args.args:
            return None
        new = copied(method)
        me = new.args.args.pop(0).arg
        new.name = name if method_name in ("forward", "__call__") else method_name
        new.body = [_unselfed(item, me) for item in new.body if not _returns(item, me)] or [ast.Pass()]
        result.append(new)
    # ``__init__`` may call the methods, so they come first; what they read is looked up when they run.
    result += prepared
    if isinstance(target, ast.Name):
        edit = Edit.of(statement, result)
    else:
        edit = Edit(((statement, [*result, statement]), (made, ast.Name(id=name, ctx=ast.Load()))))
    return _members_as_names(apply(tree, [edit, Edit.remove(owner)]), name)


def _returns(statement: ast.stmt, name: str) -> bool:
    """``return self``, for chains of calls."""
    return isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name) and statement.value.id == name


def _prepared(
    tree: ast.Module, owner: ast.ClassDef, made: ast.Call, init: ast.FunctionDef | None
) -> list[ast.AST] | None:
    """The class's own values, then what its ``__init__`` does with the arguments it is given."""
    result: list[ast.AST] = [
        ast.Assign(targets=[ast.Name(id=item.targets[0].id, ctx=ast.Store())], value=item.value)
        for item in owner.body
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)
    ]
    if init is None:
        return None if made.args or made.keywords else result
    bound = arguments_of(init, made, skip=1)
    if bound is None or not init.args.args or _gives(init):
        return None
    me = init.args.args[0].arg
    members = {node.attr for node in walk(owner) if isinstance(node, ast.Attribute)}
    clash = (bound_names(init.body) | set(bound)) & (all_names(tree, but=owner) | members)
    renames = {name: f"{name}_" for name in sorted(clash)}
    assigned = bound_names(init.body)
    plain = (ast.Constant, ast.Name)
    simple: dict[str, ast.expr] = {
        name: value for name, value in bound.items() if isinstance(value, plain) and name not in assigned
    }
    result += [
        ast.Assign(targets=[ast.Name(id=renames.get(name, name), ctx=ast.Store())], value=value)
        for name, value in bound.items()
        if name not in simple
    ]
    own = [statement for statement in init.body if "super()" not in ast.unparse(statement)]
    result += [_unselfed(substituted(statement, renames, simple), me) for statement in own]
    return result


def _gives(function: ast.FunctionDef) -> bool:
    own = [node for statement in function.body for node in in_own_scope(statement)]
    return any(isinstance(node, ast.Return) and node.value for node in own)


def _fresh(name: str, tree: ast.Module) -> str:
    taken = all_names(tree)
    while name in taken:
        name += "_"
    return name


def _unselfed(statement: ast.stmt, me: str) -> ast.stmt:
    """``self.x`` as ``x``, ``self.register_buffer("x", value)`` as ``x = value``."""
    new = _WithoutSelf(me).visit(copied(statement))
    assert isinstance(new, ast.stmt)
    return new


class _WithoutSelf(ast.NodeTransformer):
    def __init__(self, me: str) -> None:
        self.me = me

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == self.me:
            return ast.Name(id=node.attr, ctx=node.ctx)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # The method of a class in here has a ``self`` of its own.
        return node if self.me in {item.arg for item in parameters(node.args)} else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if (
            isinstance(call, ast.Call)
            and ast.unparse(call.func) in (f"{self.me}.register_buffer", f"{self.me}.register_parameter")
            and len(call.args) > 1
            and isinstance(call.args[0], ast.Constant)
        ):
            target = ast.Name(id=str(call.args[0].value), ctx=ast.Store())
            return ast.Assign(targets=[target], value=self.visit(call.args[1]))
        return self.generic_visit(node)


def _members_as_names(tree: ast.Module, name: str) -> ast.Module:
    """``model.lin`` as ``lin``, now that there is no object."""
    bound = {node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in walk(tree) if isinstance(node, Function)}
    edits = [
        Edit.of(node, ast.Name(id=node.attr, ctx=node.ctx))
        for node in walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and node.attr in bound
    ]
    return apply(tree, edits)
