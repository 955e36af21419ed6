"""Delete parameters together with their arguments at every call, and returned elements together with their targets.

Before and after::

    def f(x, n, unused):              def f(x):
        return x * n, x                   return x * 2
    y, z = f(a, 2, b)                 y = f(a)

No deletion in one place can do this, because definition and calls have to agree. A parameter goes when its function
does not read it, or when every call binds it to the same constant, function or object, which then takes its place.

An autograd function has more places that have to agree: its calls, ``forward``, the result of ``backward``,
``save_for_backward`` and the names that ``saved_tensors`` is unpacked to. A change of one alone fails in eager.

Parameters stay where not all calls can be seen, as in callbacks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.calls import argument_for, calls_of_name
from torchbisect.minimizer.syntax.edits import Edit, Replacement, copied
from torchbisect.minimizer.syntax.names import called_name, substituted
from torchbisect.minimizer.syntax.scope import bound_names, parameters, without_parameter
from torchbisect.minimizer.syntax.tree import Function, walk

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def functions(search: ReductionSearch) -> None:
    """Delete what no function reads in one question, then one by one from the last parameter of each function back."""
    search.scan_in_batches(_unread_parameters)
    search.scan(_parameter_edits)
    search.scan(_passed_on)
    search.scan(_returned_elements)


def _unread_parameters(tree: ast.Module) -> Iterator[Edit]:
    """Return edits for parameters that no statement reads, of functions whose calls give them."""
    return (
        edit
        for edit in _parameter_edits(tree)
        if len(edit.changes) > 1 and isinstance(edit.changes[0][0], ast.arguments)
    )


def _parameter_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return edits for each parameter, from the last of each function back."""
    definitions = {node.name for node in walk(tree) if isinstance(node, (*Function, ast.ClassDef))} | _objects(tree)
    for function in walk(tree):
        if not isinstance(function, Function):
            continue
        method = _implicit_parameters(tree, function)
        names = [item.arg for item in [*function.args.posonlyargs, *function.args.args]]
        calls = _calls_of(tree, function)
        if not calls:
            # A callback: its callers are not in the script and keep giving all arguments.
            continue
        for number in reversed(range(method, len(names))):
            given = [argument_for(call, number - method, names[number]) for call in calls]
            yield from _edits_without(
                function, number, given, definitions, _overrides(tree, function) if method else []
            )


def _objects(tree: ast.Module) -> set[str]:
    """Return the names at module level that are bound once, to an object of a class of the script."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    stored = [node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    found = {
        ast.unparse(node.targets[0])
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and called_name(node.value.func) in classes
    }
    return {name for name in found if stored.count(name) == 1}


def _implicit_parameters(tree: ast.Module, function: ast.AST) -> int:
    """Return 1 for a method, whose first parameter no call gives, else 0."""
    for owner in walk(tree):
        if isinstance(owner, ast.ClassDef) and function in owner.body:
            decorators = [ast.unparse(item) for item in getattr(function, "decorator_list", [])]
            return 0 if "staticmethod" in decorators else 1
    return 0


def _overrides(tree: ast.Module, method: Definition) -> list[Definition]:
    """Return the methods of other classes that the same calls may reach, as the text does not tell whose is called."""
    owners = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    if method.name in ("__init__", "forward", "__call__"):
        return []
    found = [item for owner in owners for item in owner.body if isinstance(item, Function)]
    return [item for item in found if item.name == method.name and item is not method]


def _calls_of(tree: ast.Module, function: Definition) -> list[ast.Call]:
    """Return the calls of a function; for ``__init__`` those of its class, for ``forward`` those of its objects."""
    owner = next((item for item in walk(tree) if isinstance(item, ast.ClassDef) and function in item.body), None)
    if owner is None or function.name not in ("__init__", "forward", "__call__"):
        return calls_of_name(tree, function.name)
    if function.name == "__init__":
        return calls_of_name(tree, owner.name)
    assigned = [node for node in walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    made = {ast.unparse(item.targets[0]) for item in assigned if ast.unparse(item.value).startswith(f"{owner.name}(")}
    return [node for node in walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in made]


def _edits_without(
    function: Definition,
    number: int,
    given: list[ast.expr | ast.keyword | None],
    definitions: set[str],
    overrides: list[Definition],
) -> Iterator[Edit]:
    """Return the edit that deletes an unread parameter, or writes its one constant value in its place."""
    positional = [*function.args.posonlyargs, *function.args.args]
    name = positional[number].arg
    reads = _reads_parameter(function, name)
    arguments = without_parameter(function.args, number)
    removals: list[tuple[ast.AST, Replacement]] = [(item, None) for item in given if item is not None]
    for item in overrides:
        names = [*item.args.posonlyargs, *item.args.args]
        if number >= len(names) or _reads_parameter(item, names[number].arg):
            return
        removals.append((item.args, without_parameter(item.args, number)))
    if not reads:
        yield Edit(((function.args, arguments), *removals))
        return
    values = [item.value if isinstance(item, ast.keyword) else item for item in given]
    default = _default_of(function.args, number)
    bound = [value if value is not None else default for value in values]
    texts = {ast.unparse(value) for value in bound if value is not None}
    if None in bound or len(texts) != 1 or name in bound_names(function.body):
        return
    value = next((value for value in values if value is not None), default)
    if not isinstance(value, ast.Constant) and not (isinstance(value, ast.Name) and value.id in definitions):
        # A tensor stays an argument: made inside the function it would be traced, and as a global it is hard to find.
        return
    local = {item.arg for item in parameters(function.args)} | bound_names(function.body)
    if any(isinstance(node, ast.Name) and node.id in local for node in walk(value)):
        return
    body = [substituted(item, {}, {name: value}) for item in function.body]
    new = copied(function)
    new.args, new.body = arguments, body
    yield Edit(((function, new), *removals))


def _reads_parameter(function: Definition, name: str) -> bool:
    """Tell whether a function may read what a call gives for a parameter: not if it binds the name anew first."""
    for statement in function.body:
        mentions = [node for node in walk(statement) if isinstance(node, ast.Name) and node.id == name]
        if mentions:
            plain = isinstance(statement, ast.Assign) and not any(isinstance(node.ctx, ast.Load) for node in mentions)
            return not plain
    return False


def _default_of(arguments: ast.arguments, number: int) -> ast.expr | None:
    first = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return arguments.defaults[number - first] if number >= first else None


def _passed_on(tree: ast.Module) -> Iterator[Edit]:
    """Return edits that delete ``*args`` or ``**kwargs`` of a function that only passes them on."""
    for function in walk(tree):
        if not isinstance(function, Function):
            continue
        nodes = [node for statement in function.body for node in walk(statement)]
        for field in ("kwarg", "vararg"):
            extra = getattr(function.args, field)
            if extra is None:
                continue
            reads = [node for node in nodes if isinstance(node, ast.Name) and node.id == extra.arg]
            stars = [node for node in nodes if isinstance(node, (ast.Starred, ast.keyword)) and node.value in reads]
            passed = [node for node in stars if getattr(node, "arg", None) is None]
            if len(passed) == len(reads):
                given = copied(function.args)
                setattr(given, field, None)
                yield Edit(((function.args, given), *((node, None) for node in passed)))


def _returned_elements(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from ``return a, b`` and ``x, y = f()`` to ``return a`` and ``x = f()``."""
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
            and node.value in calls_of_name(tree, "__call__" if function.name == "forward" else function.name)
        ]
        for number in reversed(range(len(elements))):
            owners = [owner for owner in [returned[0].value, *unpacked] if isinstance(owner, (ast.Tuple, ast.List))]
            yield Edit(
                tuple((owner, _without_element(owner, number)) for owner in owners if len(owner.elts) == len(elements))
            )


def _without_element(owner: ast.Tuple | ast.List, number: int) -> ast.expr:
    """Return a tuple or list without one element, or its only other element."""
    kept = [item for other, item in enumerate(owner.elts) if other != number]
    return kept[0] if len(kept) == 1 else type(owner)(elts=kept, ctx=owner.ctx)


def autograd_functions(search: ReductionSearch) -> None:
    """Delete saved tensors, then arguments, from the last back: an argument may be there only to be saved."""
    search.scan(_saved_tensors)
    search.scan(_autograd_arguments)


def _autograd_functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef, dict[str, ast.FunctionDef]]]:
    """Return the classes that derive from ``torch.autograd.Function``, with their methods by name."""
    for owner in walk(tree):
        if isinstance(owner, ast.ClassDef) and any(ast.unparse(base).endswith("Function") for base in owner.bases):
            yield owner, {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}


def _autograd_arguments(tree: ast.Module) -> Iterator[Edit]:
    """Return edits that delete an argument of an autograd function in ``forward``, ``backward`` and all calls."""
    for owner, methods in _autograd_functions(tree):
        forward, backward = methods.get("forward"), methods.get("backward")
        if forward is None:
            continue
        calls = [
            node
            for node in walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{owner.name}.apply"
        ]
        first = 0 if "setup_context" in methods else 1
        returned = [node for node in walk(backward) if isinstance(node, ast.Return)] if backward else []
        for number in reversed(range(first, len(forward.args.args))):
            changes: list[tuple[ast.AST, Replacement]] = [(forward.args, without_parameter(forward.args, number))]
            place = number - first
            changes += [(call.args[place], None) for call in calls if place < len(call.args)]
            tuples = [item.value for item in returned if isinstance(item.value, ast.Tuple)]
            for value in tuples:
                kept = [item for other, item in enumerate(value.elts) if other != place]
                if len(kept) < len(value.elts):
                    changes.append((value, kept[0] if len(kept) == 1 else ast.Tuple(elts=kept, ctx=ast.Load())))
            yield Edit(tuple(changes))


def _saved_tensors(tree: ast.Module) -> Iterator[Edit]:
    """Return edits that delete one saved tensor where it is saved and where it is unpacked."""
    for _, methods in _autograd_functions(tree):
        nodes = [node for method in methods.values() for node in walk(method)]
        saves = [
            node
            for node in nodes
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("save_for_backward")
        ]
        targets = [
            node.targets[0]
            for node in nodes
            if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(".saved_tensors")
        ]
        if len(saves) != 1 or len(targets) != 1 or not isinstance(targets[0], ast.Tuple):
            continue
        for number in reversed(range(min(len(saves[0].args), len(targets[0].elts)))):
            if len(saves[0].args) > 1:
                yield Edit.remove(saves[0].args[number], targets[0].elts[number])
