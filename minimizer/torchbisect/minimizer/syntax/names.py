"""Find all names of a tree, make new ones that clash with none of them, and exchange names."""

from __future__ import annotations

import ast
from collections.abc import Collection

from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.scope import bound_names, local_names, parameters, variables_in
from torchbisect.minimizer.syntax.tree import children

SHORT_NAMES = ("x", "y", "z", "w")
"""Names that people give to tensors in a short script, in the order of preference."""


def all_names(scope: ast.AST, *, but: ast.AST | None = None) -> set[str]:
    """Return every name that is written in a tree, whatever it stands for, except in the definition ``but``."""
    found: set[str] = set()
    stack: list[ast.AST] = [scope]
    while stack:
        node = stack.pop()
        if node is but:
            continue
        for field in ("id", "name", "arg", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str) and not isinstance(node, ast.keyword):
                found.add(value.split(".")[0])
        stack.extend(children(node))
    return found


def called_name(function: ast.expr) -> str | None:
    """Return the last name of what is called: ``render`` for ``w.render``."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def variable_names(function: ast.FunctionDef) -> set[str]:
    """Return the parameters of a function, the names that it binds, and every name that is used inside it."""
    return local_names(function) | variables_in(function)


def fresh_name(name: str, taken: Collection[str]) -> str:
    """Return the name itself, or with the first number from 2 on that is not taken: ``x``, ``x2``, ``x3``."""
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"


def short_name(taken: Collection[str]) -> str:
    """Return the first of ``SHORT_NAMES`` that is not taken, else a numbered ``x``."""
    return next((name for name in SHORT_NAMES if name not in taken), None) or fresh_name("x", taken)


def substituted(node: ast.stmt, renames: dict[str, str], direct: dict[str, ast.expr]) -> ast.stmt:
    """Return a copy of a statement with names exchanged. Inner scopes that bind a name themselves keep it.

    ``renames`` holds for reads and bindings; the expressions in ``direct`` take the place of reads only.
    """
    new = _Substitute(renames, direct).visit(copied(node))
    assert isinstance(new, ast.stmt)
    return new


def with_values(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """Return a copy of an expression with values in the place of the names that it reads."""
    new = substituted(ast.Expr(node), {}, values)
    assert isinstance(new, ast.Expr)
    return new.value


class _Substitute(ast.NodeTransformer):
    def __init__(self, renames: dict[str, str], direct: dict[str, ast.expr]) -> None:
        self.renames = renames
        self.direct = direct

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.direct and isinstance(node.ctx, ast.Load):
            return copied(self.direct[node.id])
        node.id = self.renames.get(node.id, node.id)
        return node

    def _inner(self, node: ast.FunctionDef | ast.Lambda) -> ast.AST:
        own = {item.arg for item in parameters(node.args)}
        body = node.body if isinstance(node.body, list) else [node.body]
        own |= bound_names(body) if isinstance(node, ast.FunctionDef) else set()
        inner = _Substitute(
            {name: new for name, new in self.renames.items() if name not in own},
            {name: new for name, new in self.direct.items() if name not in own},
        )
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.visit(item) for item in node.decorator_list]
            node.name = self.renames.get(node.name, node.name)
            node.body = [inner.visit(item) for item in node.body]
        else:
            node.body = inner.visit(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._inner(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._inner(node)
