"""Operators that a script calls; they tell apart bugs whose only symptom is a wrong value."""

from __future__ import annotations

import ast
import re

#: Names that scripts call to make tensors, to compile, to print or to check; almost every script has them.
_COMMON = frozenset(
    ("allclose", "arange", "append", "assert_close", "backward", "clone", "close", "compile", "detach", "empty")
    + ("equal", "eval", "format", "full", "item", "join", "linspace", "manual_seed", "ones", "ones_like", "print")
    + ("rand", "rand_like", "randint", "randn", "randn_like", "randperm", "requires_grad_", "reset", "tensor")
    + ("zeros", "zeros_like")
)
_SPECIAL = re.compile(r"__\w+__")


def called_operators(source: str) -> tuple[str, ...]:
    """Return the methods, module functions, arithmetic and indexing that a script uses, in alphabetical order.

    A call of a plain name is left out, because it is a function of the script itself. The result is empty for a text
    that is not Python.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(node.func.attr)
        elif isinstance(node, ast.Subscript):
            found.add("getitem" if isinstance(node.ctx, ast.Load) else "setitem")
        elif isinstance(node, ast.BinOp):
            found.add(type(node.op).__name__.lower())
    return tuple(sorted(name for name in found - _COMMON if not _SPECIAL.fullmatch(name)))
