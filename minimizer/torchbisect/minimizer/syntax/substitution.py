"""Copies of statements with names exchanged for other names or for expressions."""

from __future__ import annotations

import ast

from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.scope import bound_names, parameters


def substituted(node: ast.stmt, renames: dict[str, str], direct: dict[str, ast.expr]) -> ast.stmt:
    """Return a copy of a statement with names exchanged. Inner scopes that bind a name themselves keep it.

    Args:
        node: the statement.
        renames: new names by old name, both where a name is read and where it is bound.
        direct: expressions by name, which take the place of the reads.
    """
    new = _Substitute(renames, direct).visit(copied(node))
    assert isinstance(new, ast.stmt)
    return new


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
