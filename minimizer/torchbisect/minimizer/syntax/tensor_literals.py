"""Tensors that are written out as nested lists of numbers."""

from __future__ import annotations

import ast

from torchbisect.minimizer.syntax.names import called_name
from torchbisect.minimizer.syntax.tree import preorder


def tensor_literals(tree: ast.Module) -> list[ast.List]:
    """Return the lists of numbers that tensors are made from: of one length on each level."""
    calls = [node for node in preorder(tree) if isinstance(node, ast.Call) and called_name(node.func) == "tensor"]
    given = [call.args[0] for call in calls if call.args]
    return [value for value in given if isinstance(value, ast.List) and shape_of(value)]


def shape_of(literal: ast.expr) -> tuple[int, ...]:
    """Return the shape of a nested list; empty for a number, and for a list whose items differ in shape."""
    if not isinstance(literal, ast.List) or not literal.elts:
        return ()
    inner = {shape_of(item) for item in literal.elts}
    nested = {isinstance(item, ast.List) for item in literal.elts}
    return (len(literal.elts), *inner.pop()) if len(inner) == len(nested) == 1 else ()
