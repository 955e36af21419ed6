"""Whether an expression may do more than have a value, as far as its text tells."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection

from torchbisect.minimizer.syntax.tree import walk

_CHANGE = frozenset(
    ("add", "append", "apply", "attach", "backward", "clear", "close", "compile", "discard", "extend", "insert", "next")
    + ("pop", "popleft", "remove", "reset", "seed", "send", "setdefault", "sort", "start", "step", "update", "write")
)
_BUILT_IN = frozenset(dir(builtins)) - {"exec", "eval", "input", "next", "open", "print", "setattr", "delattr"}


def may_act(value: ast.expr, imported: Collection[str], members: Collection[str]) -> bool:
    """Whether making this value may change something else.

    What a library's functions compute changes nothing, but for those whose names say so (``manual_seed``,
    ``register_hook``, ``add_``); what the script's own do isn't looked into.

    Args:
        value: the expression.
        imported: names that the script imports.
        members: the methods of the script's classes.
    """
    for node in walk(value):
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return True
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in members or name in _CHANGE or name.endswith(("_", "_seed")):
                return True
            if name.startswith(("register", "set_", "use_")):
                return True
        elif not isinstance(node.func, ast.Name) or not (node.func.id in _BUILT_IN or node.func.id in imported):
            return True
    return False
