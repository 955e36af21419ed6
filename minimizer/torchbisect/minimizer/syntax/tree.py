"""Read-only helpers for syntax trees: parsing, unparsing, and walking in several orders.

Nodes keep the line numbers of the text they came from, so a line of a trace can still be looked up after many edits.
Nodes that a pass creates have no line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Comprehension = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def parse(text: str) -> ast.Module:
    """Return the tree of a script's text. Raises ``SyntaxError`` or, for null bytes, ``ValueError``."""
    return ast.parse(text)


def text_of(tree: ast.AST) -> str:
    """Return the text of a tree; equal trees have equal texts."""
    return ast.unparse(tree)


def expression(text: str) -> ast.expr:
    """Return the tree of an expression, without line numbers: it stands for no line of the user's text.

    Raises:
        SyntaxError: the text is not an expression.
    """
    body = ast.parse(text, mode="eval").body
    for node in walk(body):
        for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            if hasattr(node, name):
                delattr(node, name)
    return body


def bodies(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield every list of statements with the node it belongs to, outer ones first."""
    for node in walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield node, block


def children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node, as ``ast.iter_child_nodes`` does, but faster: a reduction does little else."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all its descendants in breadth-first order, as ``ast.walk`` yields them."""
    found = [node]
    for item in found:
        found += children(item)
    return found


def preorder(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants in the order of the text."""
    yield node
    for child in children(node):
        yield from preorder(child)


def parents(tree: ast.AST) -> dict[int, ast.AST]:
    """Map the ``id`` of each node to its parent."""
    return {id(child): node for node in walk(tree) for child in children(node)}


def count_nodes(tree: ast.AST) -> int:
    """Return the number of nodes of a tree, the size by which results are compared."""
    return len(walk(tree))
