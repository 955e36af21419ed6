"""Edits of syntax trees as values: applying an edit builds a new tree and leaves the old one unchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar, Union

from torchbisect.minimizer.syntax.tree import walk

Replacement = Union[ast.AST, "list[ast.AST]", None]
Node = TypeVar("Node", bound=ast.AST)


class InvalidEdit(Exception):
    """An edit removes a child that its parent cannot do without."""


@dataclass(frozen=True)
class Edit:
    """A change to a tree.

    Attributes:
        changes: pairs of a node of the tree, found by identity, and its replacement. ``None`` removes the node. A list
            is allowed where the parent holds a list. A replacement may contain nodes of the tree, itself included.
    """

    changes: tuple[tuple[ast.AST, Replacement], ...]

    @classmethod
    def of(cls, node: ast.AST, replacement: Replacement) -> Edit:
        """Return an edit that replaces one node."""
        return cls(((node, replacement),))

    @classmethod
    def remove(cls, *nodes: ast.AST) -> Edit:
        """Return an edit that removes some nodes together."""
        return cls(tuple((node, None) for node in nodes))


def apply(tree: ast.Module, edits: Iterable[Edit]) -> ast.Module:
    """Return a tidy copy of ``tree`` with all edits made. Of two edits of one node a removal wins, else the later one.

    Raises ``InvalidEdit`` if a removed node is required by its parent.
    """
    table: dict[int, Replacement] = {}
    for edit in edits:
        for node, replacement in edit.changes:
            if id(node) not in table or table[id(node)] is not None:
                table[id(node)] = replacement
    return tidy(_copy(tree, table))


def apply_or_none(tree: ast.Module, edits: Iterable[Edit]) -> ast.Module | None:
    """Return the edited tree, or ``None`` if the edits are invalid."""
    try:
        return apply(tree, edits)
    except InvalidEdit:
        return None


def inline_docstring(tree: ast.Module) -> ast.Module:
    """Replace each read of ``__doc__`` by the docstring's text, because reductions drop the docstring itself."""
    text = ast.get_docstring(tree, clean=False)
    reads = [node for node in walk(tree) if isinstance(node, ast.Name) and node.id == "__doc__"]
    return apply(tree, [Edit.of(node, ast.Constant(text)) for node in reads]) if text and reads else tree


def copied(node: Node) -> Node:
    """Return a deep copy of a node."""
    return _copy(node, {})


def _copy(node: Node, table: dict[int, Replacement]) -> Node:
    new = type(node).__new__(type(node))
    for name in node._attributes:
        if hasattr(node, name):
            setattr(new, name, getattr(node, name))
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            items: list[object] = []
            for item in value:
                items.extend(_resolve(item, table) if isinstance(item, ast.AST) else [item])
            setattr(new, name, items)
        elif isinstance(value, ast.AST):
            found = _resolve(value, table)
            if len(found) > 1 or (not found and not _optional(node, name)):
                raise InvalidEdit(f"{type(node).__name__}.{name}")
            setattr(new, name, found[0] if found else None)
        else:
            setattr(new, name, value)
    return new


def _resolve(node: ast.AST, table: dict[int, Replacement]) -> list[ast.AST]:
    """Return copies of the nodes that take a node's place; a replacement may contain the node it replaces."""
    if id(node) not in table:
        return [_copy(node, table)]
    replacement = table.pop(id(node))
    try:
        if replacement is None:
            return []
        if isinstance(replacement, list):
            return [new for item in replacement for new in _resolve(item, table)]
        return _resolve(replacement, table)
    finally:
        table[id(node)] = replacement


_OPTIONAL = {
    ("Return", "value"), ("AnnAssign", "value"), ("arg", "annotation"), ("FunctionDef", "returns"),
    ("AsyncFunctionDef", "returns"), ("Raise", "exc"), ("Raise", "cause"), ("Assert", "msg"), ("Yield", "value"),
    ("Slice", "lower"), ("Slice", "upper"), ("Slice", "step"), ("withitem", "optional_vars"), ("ExceptHandler", "type"),
    ("arguments", "vararg"), ("arguments", "kwarg"), ("FormattedValue", "format_spec"), ("match_case", "guard"),
}  # fmt: skip


def _optional(node: ast.AST, field: str) -> bool:
    return (type(node).__name__, field) in _OPTIONAL


class _Tidy(ast.NodeTransformer):
    """Repair the tree that edits leave, and drop statements without effect."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.stmt) and not hasattr(node, "lineno"):
            # ast.unparse needs a line; 0 is none of the user's.
            node.lineno = 0
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                kept = [item for item in block if not _has_no_effect(item)]
                needed = name == "body" and not isinstance(node, ast.Module)
                setattr(node, name, kept or ([ast.Pass()] if needed else []))
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return node if node.names else None

    def visit_Global(self, node: ast.Global) -> ast.AST | None:
        return node if node.names else None

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST | None:
        return node if node.names else None

    def visit_Delete(self, node: ast.Delete) -> ast.AST | None:
        return self.generic_visit(node) if node.targets else None

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        return node if node.targets else ast.copy_location(ast.Expr(node.value), node)

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node if node.items else node.body

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node if node.handlers or node.finalbody else node.body + node.orelse

    def visit_Match(self, node: ast.Match) -> ast.AST:
        self.generic_visit(node)
        return node if node.cases else ast.copy_location(ast.Expr(node.subject), node)

    def visit_MatchOr(self, node: ast.MatchOr) -> ast.AST:
        self.generic_visit(node)
        return node.patterns[0] if len(node.patterns) == 1 else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return node.values[0] if len(node.values) == 1 else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        node.values = [item if _fits_f_string(item) else ast.FormattedValue(item, -1) for item in node.values]
        if all(isinstance(item, ast.Constant) for item in node.values):
            return ast.Constant("".join(str(item.value) for item in node.values if isinstance(item, ast.Constant)))
        return node


def _fits_f_string(node: ast.expr) -> bool:
    """Tell whether a node may stand in an f-string as it is: text, or an expression already in braces."""
    return isinstance(node, ast.FormattedValue) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _has_no_effect(node: ast.AST) -> bool:
    """Tell whether a statement is a docstring, a bare name or constant, or ``pass``."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.Name))
    )


def tidy(tree: ast.Module) -> ast.Module:
    """Repair a tree in place after edits: empty bodies, statements without children, statements without effect."""
    result = _Tidy().visit(tree)
    assert isinstance(result, ast.Module)
    return result
