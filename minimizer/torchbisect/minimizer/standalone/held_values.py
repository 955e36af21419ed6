"""Write the script so that an assertion can read what only a closure, an argument or an unnamed object holds."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.names import all_names, fresh_name
from torchbisect.minimizer.syntax.scope import arguments_of, in_own_scope, only_call
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, expression, walk

_CLOSURE = re.compile(r"\bclosure ([A-Za-z_]\w*)(.*)$")
_ARGUMENT = re.compile(r"\bargument(?: ([A-Za-z_]\w*)|\[(\d+)\])(.*)$")
_OWN = re.compile(r"\bself((?:\.\w+)(?:\[(?:-?\d+|'[^']*'|\"[^\"]*\")\]|\.\w+)*)$")
_PATH = re.compile(r"(?:\[(?:-?\d+|'[^']*'|\"[^\"]*\")\]|\.\w+)*\Z")


def closure_values(tree: ast.Module, place: str) -> Iterator[tuple[ast.expr, ast.Module]]:
    """Yield an expression for a variable that the differing closure shares, each with the script that returns it.

    ``torch.compile(make())(x)`` becomes ``function, seen = make()`` and ``torch.compile(function)(x)``.
    """
    found = _CLOSURE.search(place)
    if found is None or not tree.body or not _PATH.match(found.group(2).strip()):
        return
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and not function.decorator_list:
            changed = _returning(tree, function, found.group(1))
            if changed is not None:
                yield expression(changed[0] + found.group(2).strip()), changed[1]


def argument_values(tree: ast.Module, place: str) -> Iterator[tuple[ast.expr, ast.Module]]:
    """Yield an expression for a value that the argument of a call holds, each with the script in which that has a name.

    ``f(Device(state))`` becomes ``device = Device(state)`` and ``f(device)``.
    """
    found = _ARGUMENT.search(place)
    if found is None or not _PATH.match(path := found.group(3).strip()) or path.endswith(".grad"):
        return
    for function in tree.body:
        call = only_call(tree, function) if isinstance(function, ast.FunctionDef) else None
        given = arguments_of(function, call) if isinstance(function, ast.FunctionDef) and call is not None else None
        name = found.group(1) or next(itertools.islice(given or {}, int(found.group(2)), None), "")
        value = (given or {}).get(name)
        owner = next((item for item in tree.body if value is not None and value in walk(item)), None)
        if isinstance(value, ast.Name):
            yield expression(value.id + path), tree
        elif value is not None and isinstance(owner, (ast.Expr, ast.Assign)):
            free = fresh_name(name, all_names(tree, but=function))
            yield expression(free + path), _with_name(tree, owner, value, free)


def object_values(tree: ast.Module, place: str) -> Iterator[tuple[ast.expr, ast.Module]]:
    """Yield an expression for an attribute of the compiled object, each with the script in which the object has a name.

    ``torch.compile(Net().step)(x)`` becomes ``model = Net()`` and ``torch.compile(model.step)(x)``.
    """
    found = _OWN.search(place)
    if found is None:
        return
    path = re.sub(r"\.(\d+)", r"[\1]", found.group(1))
    torch_names = TorchNames.of(tree)
    for statement in tree.body:
        if isinstance(statement, (*Function, ast.ClassDef)):
            continue
        for node in walk(statement):
            if not isinstance(node, ast.Call) or not torch_names.is_compile(node) or not node.args:
                continue
            made = node.args[0]
            made = made.value if isinstance(made, ast.Attribute) else made
            if isinstance(made, ast.Name):
                yield expression(made.id + path), tree
            elif isinstance(made, ast.Call):
                name = fresh_name("model", all_names(tree))
                yield expression(name + path), _with_name(tree, statement, made, name)


def _with_name(tree: ast.Module, statement: ast.stmt, value: ast.expr, name: str) -> ast.Module:
    """Return the script in which a value of a statement is assigned to a name before it."""
    before = ast.Assign(targets=[ast.Name(name, ast.Store())], value=copied(value), lineno=0)
    return apply(tree, [Edit(((statement, [before, statement]), (value, ast.Name(name, ast.Load()))))])


def _returning(tree: ast.Module, function: ast.FunctionDef, name: str) -> tuple[str, ast.Module] | None:
    """Return the name that holds the variable and the script, if a statement of the module makes the only call."""
    own = [node for statement in function.body for node in in_own_scope(statement)]
    bound = any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in own)
    returns = [node for node in own if isinstance(node, ast.Return)]
    call, end = only_call(tree, function), function.body[-1]
    owner = next((item for item in tree.body if call is not None and call in walk(item)), None)
    if not bound or call is None or not isinstance(call.func, ast.Name) or returns not in ([], [end]):
        return None
    kept, result = fresh_name(name, taken := all_names(tree, but=function)), fresh_name("function", taken)
    if isinstance(owner, (ast.Expr, ast.Assign)) and isinstance(end, ast.Return) and end.value is not None:
        ending = [parse_python(f"return {ast.unparse(end.value)}, {name}").body[0]]
        after = _with_second_result(owner, call, result, kept)
    elif isinstance(owner, ast.Expr) and owner.value is call:
        ending = [end, parse_python(f"return {name}").body[0]]
        after = [parse_python(f"{kept} = {ast.unparse(call)}").body[0]]
    else:
        return None
    return kept, apply(tree, [Edit.of(end, [*ending]), Edit.of(owner, [*after])])


def _with_second_result(owner: ast.stmt, call: ast.Call, result: str, kept: str) -> list[ast.stmt]:
    """Return the statements for one with a call that returns a second result: names for both, and then their use."""
    text = ast.unparse(call)
    if isinstance(owner, ast.Assign) and owner.value is call and isinstance(owner.targets[0], ast.Name):
        return parse_python(f"{owner.targets[0].id}, {kept} = {text}").body
    (used,) = apply(ast.Module([owner], []), [Edit.of(call, ast.Name(result, ast.Load()))]).body
    return [*parse_python(f"{result}, {kept} = {text}").body, used]
