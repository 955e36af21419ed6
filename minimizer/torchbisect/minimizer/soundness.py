"""Forms that make a candidate degenerate: operations on nothing, things that stand for what they are not.

A reducer that only listens to the oracle ends in such forms. They are counted, so that a script that has one to begin
with, because its bug is about that, may keep it.
"""

from __future__ import annotations

import ast
from collections import Counter

_CONSTRUCTORS = frozenset(
    "zeros ones empty full rand randn randint arange linspace eye tensor zeros_like ones_like rand_like randn_like".split()
)


def degenerate_forms(tree: ast.Module) -> Counter[str]:
    """How often each degenerate form is there.

    - ``empty``: a tensor of no elements by its constructor: ``torch.randn(0)``, ``torch.tensor([])``, ``torch.ones()``.
    - ``compiled``: a ``torch.compile`` of nothing: called without a function and not used to decorate one.
    - ``callable``: a constructor handed over uncalled where a tensor was: ``f(torch.randn)``.
    - ``type``: a type named as an argument (``f(torch.Tensor)``).
    """
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if _constructs(node.func) and _of_nothing(node):
            found["empty"] += 1
        for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if _constructs(value):
                found["callable"] += 1
            if isinstance(value, ast.Attribute) and value.attr in ("Tensor", "Parameter", "Module"):
                found["type"] += 1
    return found


def _constructs(node: ast.expr) -> bool:
    """``torch.randn`` and its like."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "torch"
        and node.attr in _CONSTRUCTORS
    )


def _of_nothing(call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "tensor":
        first = call.args[0] if call.args else None
        return first is None or (isinstance(first, (ast.List, ast.Tuple)) and not first.elts)
    if not call.args:
        return not any(keyword.arg in ("size", "end", "input") for keyword in call.keywords)
    sizes: list[ast.expr] = []
    for value in call.args[:1] if call.func.attr in ("full", "linspace", "arange") else call.args:
        sizes += value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    zero = any(isinstance(size, ast.Constant) and size.value in (0, False) for size in sizes)
    if call.func.attr in ("linspace", "randint"):
        return False
    return zero and not (call.func.attr == "arange" and len(call.args) > 1)
