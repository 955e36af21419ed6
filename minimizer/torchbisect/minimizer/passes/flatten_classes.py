"""Turn classes and modules into functions, plain names and tensors.

Before and after::

    class Net(nn.Module):             w = torch.ones(4)
        def __init__(self):
            super().__init__()        def model(x):
            self.w = torch.ones(4)        return x * w
        def forward(self, x):
            return x * self.w
    model = Net()

No deletion can do this, because ``self`` ties a class together. ``classes`` has fewer of them: one inside another
moves out, one that adds nothing gives way to its base, and a lone subclass takes in its base. A class inside another,
or made through a second name, could not be taken apart. ``objects`` turns a class that is made in one place into the
statements of its ``__init__``, and its methods into functions.

``objects`` may make the script larger, so other passes may finish it before it is judged. Classes that are made in
several places stay.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.construction import REGISTERING, returns_name, unchained, with_constructors
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply, copied
from torchbisect.minimizer.syntax.names import all_names, substituted
from torchbisect.minimizer.syntax.scope import (
    arguments_of,
    bound_names,
    enclosing,
    in_own_scope,
    object_attributes,
    parameters,
    references,
    released_names,
)
from torchbisect.minimizer.syntax.tree import Comprehension, Function, count_nodes, expression, parents, walk

_GETTERS = {"property", "cached_property"}
_BINDING = {"staticmethod", "classmethod"}
#: Statements whose own expressions are evaluated once, so that others may stand before them.
_RUN_ONCE = (ast.Assign, ast.Expr, ast.Return, ast.Assert, ast.AugAssign, ast.For, ast.If, ast.Raise)


def classes(search: ReductionSearch) -> None:
    """Move out or replace many classes in one question, then fewer."""
    search.scan_in_batches(_class_edits)


def _class_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits of each class that can move out or give way, the outer ones first."""
    above = parents(tree)
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            if isinstance(above[id(node)], ast.ClassDef):
                yield from _moved_out(tree, node, above)
            yield from _replaced_by_base(tree, node)
            yield from _base_taken_in(tree, node)


def _moved_out(tree: ast.Module, inner: ast.ClassDef, above: dict[int, ast.AST]) -> Iterator[Edit]:
    """Return the edit that defines an inner class before the outermost one, and names it without its owner."""
    outermost = inner
    while isinstance(owner := above[id(outermost)], ast.ClassDef):
        outermost = owner
    if not isinstance(owner, ast.Module) or inner.name in all_names(tree, but=inner):
        return
    reads = [node for node in object_attributes(walk(tree)) if node.attr == inner.name]
    moved = ast.copy_location(ast.ClassDef(**{name: getattr(inner, name) for name in inner._fields}), inner)
    names = [(node, ast.Name(id=inner.name, ctx=ast.Load())) for node in reads]
    if names:
        yield Edit(((inner, None), (outermost, [moved, outermost]), *names))


def _replaced_by_base(tree: ast.Module, node: ast.ClassDef) -> Iterator[Edit]:
    """Return the edit that replaces a class with one base and nothing of its own by the base."""
    plain = all(isinstance(item, ast.Pass) for item in node.body) and not node.decorator_list and not node.keywords
    if plain and len(node.bases) == 1 and isinstance(node.bases[0], ast.Name):
        uses = [item for item in walk(tree) if isinstance(item, ast.Name) and item.id == node.name]
        yield Edit(((node, None), *((item, ast.Name(id=node.bases[0].id, ctx=item.ctx)) for item in uses)))


def _base_taken_in(tree: ast.Module, node: ast.ClassDef) -> Iterator[Edit]:
    """Return the edit that gives a class what its base has and it has not, if nothing else names the base.

    A call of ``super().__init__`` then reaches the base's base, which takes no arguments. Where other code reads an
    attribute that the base's method sets, the body of that method takes the place of the call.
    """
    bases = [item for item in tree.body if isinstance(item, ast.ClassDef)]
    for base in bases:
        named = [item for item in walk(tree) if isinstance(item, ast.Name) and item.id == base.name]
        if len(named) != 1 or named[0] not in node.bases or base.decorator_list or base.keywords:
            continue
        own = {name for item in node.body for name in bound_names([item])}
        added = [item for item in base.body if bound_names([item]) and not bound_names([item]) & own]
        bases_of = [(named[0], list[ast.AST](base.bases))]
        first = node.body[0]
        calls = [change for method in node.body for change in _calls_of_base(tree, base, method)]
        yield Edit(((base, None), *bases_of, (first, [*added, first]), *calls))


def _calls_of_base(tree: ast.Module, base: ast.ClassDef, method: ast.stmt) -> Iterator[tuple[ast.AST, Replacement]]:
    """Return what becomes of the calls of the base's own methods that one method of a class makes."""
    for statement in walk(method):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).startswith("super()."):
            continue
        name = ast.unparse(call.func).removeprefix("super().")
        called = next((item for item in base.body if isinstance(item, ast.FunctionDef) and item.name == name), None)
        bound = None if called is None else arguments_of(called, call, skip=1)
        plain = all(isinstance(value, (ast.Name, ast.Constant)) for value in (bound or {}).values())
        if called is not None and bound is not None and plain and _sets_what_others_read(tree, called):
            own = {parameters(called.args)[0].arg: expression("self")}
            yield statement, [substituted(item, {}, {**own, **bound}) for item in called.body]
        elif name == "__init__":
            yield from ((part, None) for part in (*call.args, *call.keywords))


def _sets_what_others_read(tree: ast.Module, method: ast.FunctionDef) -> bool:
    """Tell whether a method sets an attribute that is read outside of it."""
    inside = {id(item) for item in walk(method)}
    attributes = [item for item in walk(tree) if isinstance(item, ast.Attribute)]
    stored = {item.attr for item in attributes if id(item) in inside and isinstance(item.ctx, ast.Store)}
    return any(item.attr in stored for item in attributes if id(item) not in inside)


def objects(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    """Take all classes apart in one question if that works, else one after the other; ``finish`` shrinks each."""
    whole, count, room = search.tree, 0, 2 * count_nodes(search.tree)
    while count_nodes(whole) < room and (found := next(taken_apart(whole), None)) is not None:
        whole, count = found, count + 1
    if count < 2 or not (search.attempt(whole) or search.pump(whole, finish, 10)):
        _objects_one_by_one(search, finish)


def _objects_one_by_one(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    tried: set[str] = set()
    while True:
        for tree in taken_apart(search.tree):
            key = ast.dump(tree)
            if key in tried:
                continue
            tried.add(key)
            if search.attempt(tree) or search.pump(tree, finish, 10):
                break
        else:
            return


def taken_apart(tree: ast.Module) -> Iterator[ast.Module]:
    """Return a tree for each class that is made in one place, in which it is taken apart there."""
    tree = unchained(with_constructors(tree))
    above = parents(tree)
    for owner in walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        members = _members_of_class(owner)
        named = [
            item
            for item in references(enclosing(above, owner), owner.name)
            if getattr(above.get(id(item)), "attr", None) not in members
        ]
        made = above.get(id(named[0])) if len(named) == 1 else None
        if not isinstance(made, ast.Call) or made.func is not named[0]:
            continue
        statement: ast.AST = made
        while not isinstance(statement, ast.stmt) and not isinstance(statement, (ast.Lambda, *Comprehension)):
            statement = above[id(statement)]
        if not isinstance(statement, _RUN_ONCE):
            continue
        changed = _take_apart(tree, owner, made, statement)
        if changed is not None:
            yield changed


def _members_of_class(owner: ast.ClassDef) -> set[str]:
    """Return the names that a class binds itself and that need no object: ``Net.width``, not ``Net.forward``."""
    plain = [item for item in owner.body if not isinstance(item, Function) or _decorators(item) & _BINDING]
    return bound_names(plain)


def _take_apart(tree: ast.Module, owner: ast.ClassDef, made: ast.Call, statement: ast.stmt) -> ast.Module | None:
    """Return the tree in which the object gives way to its ``__init__`` and its methods as functions."""
    methods = {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}
    getters = {name for name, method in methods.items() if _decorators(method) & _GETTERS}
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is made else None
    name = target.id if isinstance(target, ast.Name) else _free_name("model", tree)
    prepared = _initialization(tree, owner, made, methods.pop("__init__", None), getters)
    if prepared is None:
        return None
    result: list[ast.AST] = []
    for method in methods.values():
        function = _as_function(method, set(methods), getters)
        if function is None:
            return None
        function.name = name if method.name in ("forward", "__call__") else method.name
        result.append(function)
    # ``__init__`` may call the methods, so they come first. The names that they read are looked up when they run.
    result += prepared
    if isinstance(target, ast.Name):
        edit = Edit.of(statement, result)
    else:
        edit = Edit(((statement, [*result, statement]), (made, ast.Name(id=name, ctx=ast.Load()))))
    changed = _members_as_names(apply(tree, [edit, Edit.remove(owner)]), name, getters)
    changed = _members_as_names(changed, owner.name, set())
    outer = enclosing(parents(tree), statement)
    return _declared(changed, outer.name if isinstance(outer, Function) else None, _set_later(tree, owner))


def _set_later(tree: ast.Module, owner: ast.ClassDef) -> set[str]:
    """Return the names of the attributes that are set outside of the ``__init__`` of a class, of whatever object."""
    start = [item for item in owner.body if isinstance(item, Function) and item.name == "__init__"]
    inside = {id(node) for item in start for node in walk(item)}
    stored = [node for node in walk(tree) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)]
    return {node.attr for node in stored if id(node) not in inside}


def _declared(tree: ast.Module, scope: str | None, names: set[str]) -> ast.Module | None:
    """Return the tree in which each function that sets one of the names declares it as that of a scope around it.

    The scope is the module, or the function of this name. ``None`` where a function has such a name as a parameter.
    """
    outer = next((node for node in walk(tree) if isinstance(node, Function) and node.name == scope), None)
    names = names & bound_names(tree.body if outer is None else outer.body)
    edits = []
    for node in walk(tree if outer is None else outer):
        if not isinstance(node, Function) or node is outer:
            continue
        own = names & bound_names(node.body) - released_names(node.body)
        if own & {item.arg for item in parameters(node.args)}:
            return None
        if own:
            made = (ast.Global if outer is None else ast.Nonlocal)(names=sorted(own))
            edits.append(Edit.of(node.body[0], [made, node.body[0]]))
    return apply(tree, edits)


def _as_function(method: ast.FunctionDef, methods: set[str], getters: set[str]) -> ast.FunctionDef | None:
    """Return a method as a function without ``self``; ``None`` where a decorator belongs to the class."""
    decorators, new = _decorators(method), copied(method)
    new.decorator_list = [item for item in new.decorator_list if not _decorators(item) & (_BINDING | _GETTERS)]
    if decorators & {"staticmethod"}:
        return new
    named = {node.id for item in new.decorator_list for node in walk(item) if isinstance(node, ast.Name)}
    if not new.args.args or named & methods:
        return None
    me = new.args.args.pop(0).arg
    new.body = [_without_self(item, me, getters) for item in new.body if not returns_name(item, me)] or [ast.Pass()]
    return new


def _decorators(node: ast.AST) -> set[str]:
    """Return the last names of a method's decorators, or that of one decorator."""
    return {ast.unparse(item).rsplit(".", 1)[-1] for item in getattr(node, "decorator_list", [node])}


def _initialization(
    tree: ast.Module, owner: ast.ClassDef, made: ast.Call, init: ast.FunctionDef | None, getters: set[str]
) -> list[ast.AST] | None:
    """Return the class's own values, then what its ``__init__`` does with the arguments it is given."""
    result: list[ast.AST] = [
        ast.Assign(targets=[ast.Name(id=item.targets[0].id, ctx=ast.Store())], value=item.value)
        for item in owner.body
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)
    ]
    if init is None:
        return None if made.args or made.keywords else result
    bound = arguments_of(init, made, skip=1)
    if bound is None or not init.args.args or _returns_value(init):
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
    result += [_without_self(substituted(statement, renames, simple), me, getters) for statement in own]
    return result


def _returns_value(function: ast.FunctionDef) -> bool:
    own = [node for statement in function.body for node in in_own_scope(statement)]
    return any(isinstance(node, ast.Return) and node.value for node in own)


def _free_name(name: str, tree: ast.Module) -> str:
    taken = all_names(tree)
    while name in taken:
        name += "_"
    return name


def _without_self(statement: ast.stmt, me: str, getters: set[str]) -> ast.stmt:
    """Return ``self.x`` as ``x``, or ``x()``, and ``self.register_buffer('x', value)`` as ``x = value``."""
    new = _WithoutSelf(me, getters).visit(copied(statement))
    assert isinstance(new, ast.stmt)
    return new


class _WithoutSelf(ast.NodeTransformer):
    """Rewriter of attributes of ``self`` to names."""

    def __init__(self, me: str, getters: set[str]) -> None:
        self.me, self.getters = me, getters

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return _member(node, self.getters) if _is_name(node.value, self.me) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # A method of an inner class has a ``self`` of its own.
        return node if self.me in {item.arg for item in parameters(node.args)} else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if (
            isinstance(call, ast.Call)
            and ast.unparse(call.func) in [f"{self.me}.{method}" for method in REGISTERING]
            and len(call.args) > 1
            and isinstance(call.args[0], ast.Constant)
        ):
            target = ast.Name(id=str(call.args[0].value), ctx=ast.Store())
            return ast.Assign(targets=[target], value=self.visit(call.args[1]))
        return self.generic_visit(node)


def _member(node: ast.Attribute, getters: set[str]) -> ast.expr:
    """Return an attribute of the object as a name, called if it was a property."""
    name = ast.Name(id=node.attr, ctx=node.ctx)
    return ast.Call(func=name, args=[], keywords=[]) if node.attr in getters else name


def _members_as_names(tree: ast.Module, name: str, getters: set[str]) -> ast.Module:
    """Return the tree with ``model.lin`` as ``lin``, ``len(model)`` as ``__len__()``, now that there is no object."""
    nodes = walk(tree)
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in nodes if isinstance(node, Function)}
    edits = []
    for node in nodes:
        if isinstance(node, ast.Attribute) and _is_name(node.value, name) and node.attr in bound:
            edits.append(Edit.of(node, _member(node, getters)))
        else:
            special, args = _special_call(node, name)
            if special in bound:
                edits.append(Edit.of(node, ast.Call(ast.Name(special, ast.Load()), args, [])))
    return apply(tree, edits)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _special_call(node: ast.AST, name: str) -> tuple[str, list[ast.expr]]:
    """Return the special method of an object that an expression calls, with its arguments; an empty name for none."""
    if isinstance(node, ast.Subscript) and _is_name(node.value, name) and isinstance(node.ctx, ast.Load):
        return "__getitem__", [node.slice]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and [*map(ast.unparse, node.args)] == [name]:
        return f"__{node.func.id}__", []
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and _is_name(node.comparators[0], name):
        return "__contains__", [node.left]
    return "", []
