"""Replace the only call of a function or method by the function's body.

Before and after::

    def scaled(x, factor):            h = x + 1
        h = x + 1                     y = h * 3
        return h * factor
    y = scaled(x, 3)

Helpers, factories and ``main`` structure a program, and a bug rarely needs them. Once they are inlined, deletion and
substitution see one straight line. Arguments that are names or constants are written in place, others are assigned
first. Local names that would clash get a number. In a loop's condition, a lambda or a comprehension no statement may
stand, so only a function of one expression is written there. A method's name has to be unique in the script, because
the text does not tell whose object it is called on.

Inlining may make the script larger at first, so each step may be finished by another pass before it is judged.
Functions that are called in several places stay, and those that return early, unless the caller returns what they
return. A generator first becomes a function that returns its first item, which is what a loop over it gets first. One
that is a context manager gives way together with the ``with``, whose body stands where it yields.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply, copied
from torchbisect.minimizer.syntax.names import all_names, called_name, fresh_name, substituted
from torchbisect.minimizer.syntax.scope import (
    arguments_of,
    bound_names,
    enclosing,
    in_own_scope,
    object_attributes,
    parameters,
    references,
)
from torchbisect.minimizer.syntax.tree import Comprehension, Function, bodies, children, count_nodes, parents, walk


def run(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    """Inline all functions in one question if that works, else one after the other; ``finish`` shrinks the results."""
    whole, count, room = search.tree, 0, 2 * count_nodes(search.tree)
    while count_nodes(whole) < room and (found := next(inlined(whole), None)) is not None:
        whole, count = found[1], count + 1
    if count > 1 and (search.attempt(whole) or search.pump(whole, finish, 6)):
        return
    tried: set[str] = set()
    while True:
        for name, tree in inlined(search.tree):
            key = name + ast.dump(tree)
            if key in tried:
                continue
            tried.add(key)
            if search.attempt(tree) or search.pump(tree, finish, 6):
                break
        else:
            return


def generators(search: ReductionSearch) -> None:
    """Turn one generator after the other into a function that returns its first item."""
    for _ in range(sum(map(_is_generator, walk(search.tree)))):
        if not any(search.attempt_rewrite(apply(search.tree, [edit])) for edit in _first_items(search.tree)):
            return


def _is_generator(node: ast.AST) -> bool:
    """Tell whether a function has a ``yield`` of its own, and no decorator that may need it."""
    return (
        isinstance(node, ast.FunctionDef)
        and not node.decorator_list
        and any(isinstance(item, (ast.Yield, ast.YieldFrom)) for part in node.body for item in in_own_scope(part))
    )


def _first_items(tree: ast.Module) -> Iterator[Edit]:
    """Return an edit for each generator: its first ``yield`` returns, and each call of it stands for the first item."""
    above = parents(tree)
    for function in walk(tree):
        if not isinstance(function, ast.FunctionDef) or not _is_generator(function):
            continue
        own = [node for part in function.body for node in in_own_scope(part)]
        yields = [node for node in own if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)]
        others = [node for node in own if isinstance(node, (ast.Yield, ast.YieldFrom))]
        if not yields or len(others) > len(yields):
            continue
        changes: list[tuple[ast.AST, Replacement]] = []
        for node in yields:
            assert isinstance(node.value, ast.Yield)
            changes.append((node, ast.Return(value=node.value.value)))
        for call in walk(tree):
            if isinstance(call, ast.Call) and called_name(call.func) == function.name:
                taken: ast.AST = call
                while isinstance(owner := above[id(taken)], ast.Call) and ast.unparse(owner.func) in ("iter", "next"):
                    taken = owner
                item = isinstance(taken, ast.Call) and ast.unparse(taken.func) == "next"
                changes.append((taken, call if item else ast.List(elts=[call], ctx=ast.Load())))
        yield Edit(tuple(changes))


def inlined(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Return each function that can be inlined, with the tree in which it is."""
    for name, called in _called_decorators(tree):
        yield from _inlined_functions(called, name)
    yield from _inlined_functions(tree)


def _inlined_functions(tree: ast.Module, name: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Return the functions of this name, or all, that can be inlined where they are called."""
    for function in [node for node in walk(tree) if isinstance(node, ast.FunctionDef) and name in ("", node.name)]:
        yield from ((function.name, changed) for changed in _context_inlined(tree, function))
        site = _call_site(tree, function)
        if site is None:
            continue
        edit = _inlining_edit(tree, function, site)
        if edit is not None:
            yield function.name, apply(tree, [edit, Edit.remove(function)])


def _called_decorators(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Return each decorator that is a function of the script, with the tree in which it is called after the ``def``."""
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for owner, body in bodies(tree):
        for function in [] if isinstance(owner, ast.ClassDef) else body:
            decorators = getattr(function, "decorator_list", [])
            names = [ast.unparse(item.func if isinstance(item, ast.Call) else item) for item in decorators]
            if isinstance(function, ast.FunctionDef) and len(names) == 1 and names[0] in own:
                plain = copied(function)
                plain.decorator_list, plain.name = [], fresh_name(f"{function.name}_", all_names(tree))
                made = ast.Call(func=decorators[0], args=[ast.Name(plain.name, ast.Load())], keywords=[])
                bound = ast.Assign(targets=[ast.Name(function.name, ast.Store())], value=made)
                yield names[0], apply(tree, [Edit.of(function, [plain, bound])])


@dataclass(frozen=True)
class _CallSite:
    """The only call of a function.

    Attributes:
        statement, scope: the statement and the scope around it.
        owner: the object of a method call.
        repeated: it is evaluated more than once, as in a loop's condition, so that no statement may stand before it.
    """

    call: ast.Call
    statement: ast.stmt
    scope: ast.AST
    owner: ast.expr | None = None
    repeated: bool = False


def _call_site(tree: ast.Module, function: ast.FunctionDef) -> _CallSite | None:
    """Return the only call of a function, if the function is named nowhere else and statements may stand there."""
    if function.decorator_list or not _may_stand_elsewhere(function):
        return None
    above = parents(tree)
    method = isinstance(above.get(id(function)), ast.ClassDef)
    named = _method_mentions(tree, function) if method else references(enclosing(above, function), function.name)
    if len(named) != 1:
        return None
    call = above.get(id(named[0]))
    if not isinstance(call, ast.Call) or call.func is not named[0]:
        return None
    owner = named[0].value if isinstance(named[0], ast.Attribute) else None
    node: ast.AST = call
    repeated = False
    while not isinstance(node, ast.stmt):
        repeated |= isinstance(node, (ast.Lambda, *Comprehension))
        node = above[id(node)]
    repeated |= isinstance(node, ast.While)
    if isinstance(node, (*Function, ast.ClassDef)) or (repeated and not isinstance(function.body[0], ast.Return)):
        return None
    if not _returns_only_at_end(function) and not _returns_call(node, call):
        return None
    scope: ast.AST = node
    while not isinstance(scope, (ast.Module, *Function, ast.ClassDef)):
        scope = above[id(scope)]
    return (
        None if scope is function or isinstance(scope, ast.ClassDef) else _CallSite(call, node, scope, owner, repeated)
    )


def _method_mentions(tree: ast.Module, method: ast.FunctionDef) -> Sequence[ast.expr]:
    """Return where a method is named, if no other can be meant."""
    name, nodes = method.name, walk(tree)
    others = [node for node in nodes if isinstance(node, Function) and node.name == name and node is not method]
    own = any(isinstance(node, ast.Name) and node.id in ("super", "__class__") for node in walk(method))
    entered = name == "__enter__" and not any(isinstance(node, ast.With) for node in nodes)
    special = (name.startswith("__") and not entered) or name == "forward"
    if others or own or special or not (method.args.posonlyargs or method.args.args):
        return []
    return [node for node in object_attributes(nodes) if node.attr == name]


def _may_be_repeated(owner: ast.expr) -> bool:
    """Tell whether an object may be written several times: it is a name, or an attribute or element of one."""
    while isinstance(owner, ast.Attribute) or (
        isinstance(owner, ast.Subscript) and isinstance(owner.slice, (ast.Constant, ast.Name))
    ):
        owner = owner.value
    return isinstance(owner, ast.Name)


def _may_stand_elsewhere(function: ast.FunctionDef) -> bool:
    """Tell whether a function is no generator, and declares no names global or nonlocal."""
    kept = (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)
    return not any(isinstance(node, kept) for node in walk(function))


def _returns_only_at_end(function: ast.FunctionDef) -> bool:
    """Tell whether a function returns at its end or not at all."""
    return not any(
        isinstance(node, ast.Return) and node is not function.body[-1] and _is_own_return(function, node)
        for node in walk(function)
    )


def _returns_call(statement: ast.stmt, call: ast.Call) -> bool:
    """Tell whether a statement returns what a call returns, so that the function may as well return by itself."""
    return isinstance(statement, ast.Return) and statement.value is call


def _is_own_return(function: ast.FunctionDef, wanted: ast.Return) -> bool:
    """Tell whether a return statement is the function's own, not that of a function inside it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if node is wanted:
            return True
        if not isinstance(node, (*Function, ast.Lambda, ast.ClassDef)):
            stack.extend(children(node))
    return False


def _inlining_edit(tree: ast.Module, function: ast.FunctionDef, site: _CallSite) -> Edit | None:
    """Return the edit that puts the body in the place of the call, or ``None`` where the arguments are unclear."""
    found = _body_at(tree, function, site)
    if found is None or (site.repeated and found[0]):
        return None
    before, body = found
    if _returns_call(site.statement, site.call):
        ended = body and isinstance(body[-1], ast.Return)
        return Edit.of(site.statement, [*before, *body, *([] if ended else [ast.Return(None)])])
    result: ast.expr = ast.Constant(None)
    if body and isinstance(body[-1], ast.Return):
        last = body.pop()
        assert isinstance(last, ast.Return)
        result = last.value or result
    statements: list[ast.AST] = [*before, *body]
    if isinstance(site.statement, ast.Expr) and site.statement.value is site.call:
        return Edit.of(site.statement, [*statements, ast.Expr(result)])
    return Edit(((site.statement, [*statements, site.statement]), (site.call, result)))


def _body_at(
    tree: ast.Module, function: ast.FunctionDef, site: _CallSite
) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
    """Return the assignments of a call's arguments, and the body with names that do not clash there."""
    bound = arguments_of(function, site.call, skip=site.owner is not None)
    if bound is None:
        return None
    if site.owner is not None:
        bound = {parameters(function.args)[0].arg: site.owner, **bound}
    assigned = bound_names(function.body)
    names = all_names(site.scope if not isinstance(site.scope, ast.Module) else tree, but=function)
    renames = {name: fresh_name(name, names) for name in sorted((assigned | set(bound)) & names)}
    before: list[ast.stmt] = []
    direct: dict[str, ast.expr] = {}
    for name, value in bound.items():
        plain = _may_be_repeated(value) if value is site.owner else isinstance(value, (ast.Name, ast.Constant))
        if plain and name not in assigned:
            direct[name] = value
        else:
            before.append(ast.Assign(targets=[ast.Name(id=renames.get(name, name), ctx=ast.Store())], value=value))
    return before, [substituted(statement, renames, direct) for statement in function.body]


def _context_inlined(tree: ast.Module, function: ast.FunctionDef) -> Iterator[ast.Module]:
    """Return the tree in which the body of a ``with`` stands where its context manager, a generator, yields."""
    own = [node for part in function.body for node in in_own_scope(part)]
    yields = [node for node in own if isinstance(node, (ast.Yield, ast.YieldFrom))]
    stated = [node for node in own if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)]
    decorators = [ast.unparse(item).rpartition(".")[2] for item in function.decorator_list]
    above = parents(tree)
    named = references(enclosing(above, function), function.name)
    if decorators != ["contextmanager"] or len(yields) != 1 or len(stated) != 1:
        return
    for name in named:
        call = above[id(name)]
        item = above[id(call)]
        block = above[id(item)]
        if not isinstance(call, ast.Call) or not isinstance(block, ast.With) or len(block.items) != 1:
            continue
        found = _body_at(tree, function, _CallSite(call, block, enclosing(above, block)))
        if found is not None:
            body = [part for statement in found[1] for part in _with_block(statement, block)]
            removed = [Edit.remove(function)] if len(named) == 1 else []
            yield apply(tree, [Edit.of(block, [*found[0], *body]), *removed])


def _with_block(statement: ast.stmt, block: ast.With) -> list[ast.stmt]:
    """Return a statement in which the body of a ``with`` has taken the place of the ``yield``."""

    class Yielding(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
            if not isinstance(node.value, ast.Yield):
                return node
            target = block.items[0].optional_vars
            value = node.value.value or ast.Constant(None)
            return [*([ast.Assign(targets=[target], value=value)] if target is not None else []), *block.body]

    changed = Yielding().visit(statement)
    return changed if isinstance(changed, list) else [changed]
