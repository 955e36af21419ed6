"""Parameters that nobody needs, with the arguments at every call; and elements that a function returns in vain.

A parameter goes when its body doesn't read it, or when every call binds it to the same constant or function, which
then takes its place. Neither can be done by deleting in one place. Leaves functions whose calls can't all be seen
(methods, callbacks).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.calls import without_parameter
from torchbisect.minimizer.syntax.edits import Edit, copied
from torchbisect.minimizer.syntax.scope import bound_names, parameters
from torchbisect.minimizer.syntax.substitution import substituted
from torchbisect.minimizer.syntax.tree import Function, walk


def run(search: ReductionSearch) -> None:
    """What no body reads in one question, then from the last parameter of each function back; then what is returned."""
    search.scan_in_batches(_unread)
    search.scan(_parameters)
    search.scan(_returns)


def _unread(tree: ast.Module) -> Iterator[Edit]:
    """The parameters that go without a trace in the body, of functions that are seen to be given them."""
    return (
        edit for edit in _parameters(tree) if len(edit.changes) > 1 and isinstance(edit.changes[0][0], ast.arguments)
    )


def _parameters(tree: ast.Module) -> Iterator[Edit]:
    definitions = {node.name for node in walk(tree) if isinstance(node, (*Function, ast.ClassDef))}
    for function in walk(tree):
        if not isinstance(function, Function):
            continue
        method = _method(tree, function)
        names = [item.arg for item in [*function.args.posonlyargs, *function.args.args]]
        partials = _partials(tree, function.name)
        if partials:
            # What the calls of a partial function give is bound to other places than in it.
            calls, before, last = partials, -1, min(len(call.args) - 1 for call in partials)
        else:
            calls, before, last = _calls_of(tree, function), method, len(names)
        if not calls:
            # A callback: whoever calls it gives it as many as before.
            continue
        for number in reversed(range(1 if method else 0, min(last, len(names)))):
            given = [_given(call, number - before, names[number]) for call in calls]
            yield from _without(function, number, given, definitions)


def _partials(tree: ast.Module, name: str) -> list[ast.Call]:
    """``functools.partial(name, ...)``, if the name is used so and in no other way."""
    named = [node for node in walk(tree) if isinstance(node, ast.Name) and node.id == name]
    found = [
        node
        for node in walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("partial", "functools.partial")
        and node.args
        and any(node.args[0] is item for item in named)
    ]
    return found if len(found) == len(named) else []


def _method(tree: ast.Module, function: ast.AST) -> int:
    """1 for a function whose first parameter calls don't give."""
    for owner in walk(tree):
        if isinstance(owner, ast.ClassDef) and function in owner.body:
            decorators = [ast.unparse(item) for item in getattr(function, "decorator_list", [])]
            return 0 if "staticmethod" in decorators else 1
    return 0


def _calls_of(tree: ast.Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    """Calls of a function; for ``__init__`` of its class, for ``forward`` of what its class made."""
    owner = next((item for item in walk(tree) if isinstance(item, ast.ClassDef) and function in item.body), None)
    if owner is None or function.name not in ("__init__", "forward", "__call__"):
        return _calls(tree, function.name)
    if function.name == "__init__":
        return _calls(tree, owner.name)
    assigned = [node for node in walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    made = {ast.unparse(item.targets[0]) for item in assigned if ast.unparse(item.value).startswith(f"{owner.name}(")}
    return [node for node in walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in made]


def _calls(tree: ast.Module, name: str) -> list[ast.Call]:
    """Calls of the name, also as ``torch.compile(name, ...)(...)``."""
    found = []
    aliases = {name} | {
        node.targets[0].id
        for node in walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and any(isinstance(item, ast.Name) and item.id == name for item in node.value.args)
    }
    for node in walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Call) and called.args:
                called = called.args[0]
            if (isinstance(called, ast.Name) and called.id in aliases) or (
                isinstance(called, ast.Attribute) and called.attr == name
            ):
                found.append(node)
    return found


def _given(call: ast.Call, number: int, name: str) -> ast.expr | ast.keyword | None:
    if any(isinstance(item, ast.Starred) for item in call.args):
        return None
    if number < len(call.args):
        return call.args[number]
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def _without(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    number: int,
    given: list[ast.expr | ast.keyword | None],
    definitions: set[str],
) -> Iterator[Edit]:
    positional = [*function.args.posonlyargs, *function.args.args]
    name = positional[number].arg
    reads = any(isinstance(node, ast.Name) and node.id == name for item in function.body for node in walk(item))
    arguments = without_parameter(function.args, number)
    removals = [(item, None) for item in given if item is not None]
    if not reads:
        yield Edit(((function.args, arguments), *removals))
        return
    values = [item.value if isinstance(item, ast.keyword) else item for item in given]
    default = _default(function.args, number)
    bound = [value if value is not None else default for value in values]
    texts = {ast.unparse(value) for value in bound if value is not None}
    if None in bound or len(texts) != 1 or name in bound_names(function.body):
        return
    value = next((value for value in values if value is not None), default)
    if not isinstance(value, ast.Constant) and not (isinstance(value, ast.Name) and value.id in definitions):
        # A tensor stays an argument: made inside it would be traced, and read as a global it reads worse.
        return
    local = {item.arg for item in parameters(function.args)} | bound_names(function.body)
    if any(isinstance(node, ast.Name) and node.id in local for node in walk(value)):
        return
    body = [substituted(item, {}, {name: value}) for item in function.body]
    new = copied(function)
    new.args, new.body = arguments, body
    yield Edit(((function, new), *removals))


def _default(arguments: ast.arguments, number: int) -> ast.expr | None:
    first = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return arguments.defaults[number - first] if number >= first else None


def _returns(tree: ast.Module) -> Iterator[Edit]:
    """``return a, b`` with ``x, y = f()`` becomes ``return a`` with ``x = f()``."""
    for function in walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        returned = [node for node in walk(function) if isinstance(node, ast.Return)]
        if len(returned) != 1 or not isinstance(returned[0].value, ast.Tuple):
            continue
        elements = returned[0].value.elts
        unpacked = [
            node.targets[0]
            for node in walk(tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], (ast.Tuple, ast.List))
            and isinstance(node.value, ast.Call)
            and node.value in _calls(tree, "__call__" if function.name == "forward" else function.name)
        ]
        for number in reversed(range(len(elements))):
            owners = [owner for owner in [returned[0].value, *unpacked] if isinstance(owner, (ast.Tuple, ast.List))]
            yield Edit(tuple((owner, _but(owner, number)) for owner in owners if len(owner.elts) == len(elements)))


def _but(owner: ast.Tuple | ast.List, number: int) -> ast.expr:
    kept = [item for other, item in enumerate(owner.elts) if other != number]
    return kept[0] if len(kept) == 1 else type(owner)(elts=kept, ctx=owner.ctx)
