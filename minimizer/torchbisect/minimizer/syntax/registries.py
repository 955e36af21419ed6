"""Decorators that enter a function or class in a table of the script's own: ``@register("clip")``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.syntax.names import called_name
from torchbisect.minimizer.syntax.tree import Function


def registered(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, ast.expr]]:
    """Yield each definition of the module that is decorated so, with the decorator: a call of what is the script's."""
    functions = {node.name for node in tree.body if isinstance(node, Function)}
    for node in tree.body:
        if not isinstance(node, (*Function, ast.ClassDef)):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call):
                method = isinstance(decorator.func, ast.Attribute)
                if method or called_name(decorator.func) in functions:
                    yield node, decorator
