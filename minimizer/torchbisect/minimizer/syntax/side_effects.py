"""Tell from its text whether an expression may do more than compute a value."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection

from torchbisect.minimizer.syntax.tree import walk

_CHANGING_METHODS = frozenset(
    ("add", "append", "apply", "attach", "backward", "clear", "close", "compile", "discard", "extend", "insert", "next")
    + ("pop", "popleft", "remove", "reset", "seed", "send", "setdefault", "sort", "start", "step", "update", "write")
)
_PURE_BUILTINS = frozenset(dir(builtins)) - {"exec", "eval", "input", "next", "open", "print", "setattr", "delattr"}


def may_have_side_effects(value: ast.expr, imported: Collection[str], members: Collection[str]) -> bool:
    """Tell whether evaluating an expression may change something else.

    Functions of libraries are assumed to change nothing, except those whose names say so (``manual_seed``,
    ``register_hook``, ``add_``). Functions of the script itself are not analyzed, so they may.

    Args:
        value: the expression.
        imported: names that the script imports.
        members: methods of the script's classes.
    """
    for node in walk(value):
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return True
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in members or name in _CHANGING_METHODS or name.endswith(("_", "_seed")):
                return True
            if name.startswith(("register", "set_", "use_")):
                return True
        elif not isinstance(node.func, ast.Name) or not (node.func.id in _PURE_BUILTINS or node.func.id in imported):
            return True
    return False
