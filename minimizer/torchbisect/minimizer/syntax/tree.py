"""Syntax trees as values: an edit says what changes, and applying it makes a new tree and leaves the old one alone.

Nodes keep the line numbers of the text they came from, so what a trace says of a line can still be looked up after
many edits. Nodes that a pass makes up have no line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar, Union

Replacement = Union[ast.AST, "list[ast.AST]", None]
Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
Comprehension = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)

Node = TypeVar("Node", bound=ast.AST)


class Unfit(Exception):
    """An edit that leaves no tree: a part that its parent can't do without was taken away."""


@dataclass(frozen=True)
class Edit:
    """A change to a tree.

    Attributes:
        changes: pairs of a node of the tree, by identity, and what takes its place: ``None`` removes it, a list takes
            its place where a list of nodes is allowed. A replacement may contain nodes of the tree, itself included.
    """

    changes: tuple[tuple[ast.AST, Replacement], ...]

    @classmethod
    def of(cls, node: ast.AST, replacement: Replacement) -> Edit:
        """One node changed."""
        return cls(((node, replacement),))

    @classmethod
    def remove(cls, *nodes: ast.AST) -> Edit:
        """Some nodes taken away together."""
        return cls(tuple((node, None) for node in nodes))


def parse(text: str) -> ast.Module:
    """The tree of a script's text. Raises ``SyntaxError`` or, for null bytes, ``ValueError``."""
    return ast.parse(text)


def apply(tree: ast.Module, edits: Iterable[Edit]) -> ast.Module:
    """A tidy copy of ``tree`` with all edits made; of two edits of one node a removal wins, else the later one.

    Raises:
        Unfit: a part was removed that its parent needs.
    """
    table: dict[int, Replacement] = {}
    for edit in edits:
        for node, replacement in edit.changes:
            if id(node) not in table or table[id(node)] is not None:
                table[id(node)] = replacement
    return tidy(_copied(tree, table))


def quoting_itself(tree: ast.Module) -> ast.Module:
    """A script that reads its ``__doc__`` with the text in its place: the docstring itself is not kept."""
    text = ast.get_docstring(tree, clean=False)
    reads = [node for node in walk(tree) if isinstance(node, ast.Name) and node.id == "__doc__"]
    return apply(tree, [Edit.of(node, ast.Constant(text)) for node in reads]) if text and reads else tree


def copied(node: Node) -> Node:
    """A deep copy."""
    return _copied(node, {})


def _copied(node: Node, table: dict[int, Replacement]) -> Node:
    new = type(node).__new__(type(node))
    for name in node._attributes:
        if hasattr(node, name):
            setattr(new, name, getattr(node, name))
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            items: list[object] = []
            for item in value:
                items.extend(_resolved(item, table) if isinstance(item, ast.AST) else [item])
            setattr(new, name, items)
        elif isinstance(value, ast.AST):
            found = _resolved(value, table)
            if len(found) > 1 or (not found and not _optional(node, name)):
                raise Unfit(f"{type(node).__name__}.{name}")
            setattr(new, name, found[0] if found else None)
        else:
            setattr(new, name, value)
    return new


def _resolved(node: ast.AST, table: dict[int, Replacement]) -> list[ast.AST]:
    if id(node) not in table:
        return [_copied(node, table)]
    replacement = table.pop(id(node))
    try:
        if replacement is None:
            return []
        if isinstance(replacement, list):
            return [new for item in replacement for new in _resolved(item, table)]
        return _resolved(replacement, table)
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
    """Puts right what an edit leaves broken, and drops statements that say nothing."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.stmt) and not hasattr(node, "lineno"):
            # ast.unparse wants a line; 0 is none of the user's.
            node.lineno = 0
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                kept = [item for item in block if not _says_nothing(item)]
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

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return node.values[0] if len(node.values) == 1 else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        node.values = [item if _in_string(item) else ast.FormattedValue(item, -1) for item in node.values]
        return node if node.values else ast.Constant("")


def _in_string(node: ast.expr) -> bool:
    """What may stand in an f-string as it is: a part in braces, or text."""
    return isinstance(node, ast.FormattedValue) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _says_nothing(node: ast.AST) -> bool:
    """A docstring, a bare name or number, ``pass``."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.Name))
    )


def tidy(tree: ast.Module) -> ast.Module:
    """Mends a tree in place after edits: empty bodies, statements without parts, statements that say nothing."""
    result = _Tidy().visit(tree)
    assert isinstance(result, ast.Module)
    return result


def text_of(tree: ast.AST) -> str:
    """The tree's text, one form for each tree."""
    return ast.unparse(tree)


def expression(text: str) -> ast.expr:
    """The tree of an expression, with no line numbers: it stands for nothing in the user's text.

    Raises ``SyntaxError``.
    """
    body = ast.parse(text, mode="eval").body
    for node in walk(body):
        for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            if hasattr(node, name):
                delattr(node, name)
    return body


def bodies(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Every list of statements with the node that it belongs to, outer ones first."""
    for node in walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield node, block


def children(node: ast.AST) -> list[ast.AST]:
    """What lies directly in a node, as ``ast.iter_child_nodes`` has it, but quicker; a reduction does little else."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all inside it, outer ones first, as ``ast.walk`` has them."""
    found = [node]
    for item in found:
        found += children(item)
    return found


def preorder(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in the order of the text."""
    yield node
    for child in children(node):
        yield from preorder(child)


def parents(tree: ast.AST) -> dict[int, ast.AST]:
    """From the identity of a node to its parent."""
    return {id(child): node for node in walk(tree) for child in children(node)}


def nodes(tree: ast.AST) -> int:
    """How many nodes a tree has; the size that results are compared by."""
    return sum(1 for _ in walk(tree))
