"""What a script calls: by this two scripts whose results are merely wrong are told apart."""

from __future__ import annotations

import ast
import re

#: Names that a script calls to have a tensor, to compile, to look or to check: they are in every script.
_COMMON = frozenset(
    ("allclose", "arange", "append", "assert_close", "backward", "clone", "close", "compile", "detach", "empty")
    + ("equal", "eval", "format", "full", "item", "join", "linspace", "manual_seed", "ones", "ones_like", "print")
    + ("rand", "rand_like", "randint", "randn", "randn_like", "randperm", "requires_grad_", "reset", "tensor")
    + ("zeros", "zeros_like")
)
_SPECIAL = re.compile(r"__\w+__")


def operators(source: str) -> tuple[str, ...]:
    """The methods and functions of modules that a script calls, indexing among them, each once, in alphabetical order.

    Nothing for a text that is no Python. A call of a plain name is the script's own function and says nothing.
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
