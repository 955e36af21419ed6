"""What a function does after the mismatch goes: its body ends at a statement, and gives back what that one made.

The mismatch is mostly in the middle of a data flow. ``values`` cuts off what leads there; this cuts off what follows:
layers, losses and heads that only carry the difference on. It is bisected, since most ends behind the culprit show it
and none before does, so a long forward costs a few questions. What becomes unused goes in the same question. Leaves
functions that give nothing back, and what the mismatch needs to be computed from it.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, InvalidEdit, apply
from torchbisect.minimizer.syntax.scope import bound_names
from torchbisect.minimizer.syntax.tree import Function, walk
from torchbisect.minimizer.unused import without_unused

_NO_VALUES = frozenset({"torch", "self", "cls", "ctx"})


def run(search: ReductionSearch) -> None:
    """Each function, the outer and first ones first."""
    for number in range(len(_functions(search.tree))):
        functions = _functions(search.tree)
        if number < len(functions):
            _shorten(search, functions[number])


def _functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions that end in a result."""
    return [node for node in walk(tree) if isinstance(node, Function) and _ends(node)]


def _ends(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    last = function.body[-1]
    if function.name == "backward" and isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple):
        # Each gradient has its argument's shape: one for all of them would not fit.
        return False
    return isinstance(last, ast.Return) and last.value is not None


def _shorten(search: ReductionSearch, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """The earliest end that still shows it, if there is one order from not to shown, else one that does."""
    base = search.tree
    ends = _early(function)
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        try:
            shown = search.attempt(without_unused(apply(base, [ends[middle]]), harmless=True))
        except InvalidEdit:
            shown = False
        if shown:
            high = middle
        else:
            low = middle + 1


def _early(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Edit]:
    """An edit for each statement that the function may end at, the first first."""
    found: list[Edit] = []
    last = function.body[-1]
    assert isinstance(last, ast.Return)
    for number, statement in enumerate(function.body[:-1]):
        name = _made(statement)
        if name is None:
            continue
        value: ast.expr = ast.Name(id=name, ctx=ast.Load())
        if isinstance(last.value, ast.Tuple):
            # Whoever takes it apart wants as many; they go later.
            value = ast.Tuple(elts=[value] * len(last.value.elts), ctx=ast.Load())
        rest = function.body[number + 1 : -1]
        if last.value is not None and (rest or ast.dump(value) != ast.dump(last.value)):
            found.append(Edit((*((item, None) for item in rest), (last.value, value))))
    return found


def _made(statement: ast.stmt) -> str | None:
    """The name of what a statement makes or changes: a target, what a method is called on, a first argument."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, (ast.Tuple, ast.List)):
            target = target.elts[0]
        return _root(target)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        for part in [call.func, *call.args] if isinstance(call.func, ast.Attribute) else call.args:
            name = _root(part.value if isinstance(part, ast.Attribute) and part is call.func else part)
            if name is not None:
                return name
        return None
    bound = sorted(bound_names(getattr(statement, "body", [])))
    return bound[-1] if bound and not isinstance(statement, (*Function, ast.ClassDef)) else None


def _root(node: ast.expr) -> str | None:
    """``y`` of ``y``, ``y[:, 0]`` and ``y.grad``."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) and node.id not in _NO_VALUES else None
