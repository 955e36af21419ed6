"""The sort key of candidates: the total order that says which of two scripts is smaller."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchbisect.minimizer.syntax.tree import walk


@dataclass(frozen=True, order=True)
class SortKey:
    """The place of a candidate in the order: fewer nodes, then fewer names, then shorter text, then the text itself.

    The text comes last so that no two candidates are equal, and so that ``f(1)`` is smaller than ``f(8)``.

    Attributes:
        nodes: number of nodes of the tree.
        names: number of different names in the tree.
        length: number of characters of the text.
        text: the text.
    """

    nodes: int
    names: int
    length: int
    text: str


def sort_key(tree: ast.AST, text: str) -> SortKey:
    """Return the sort key of a tree with this text."""
    count = 0
    names: set[str] = set()
    for node in walk(tree):
        count += 1
        for field in ("id", "name", "arg", "attr", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                names.add(value)
    return SortKey(count, len(names), len(text), text)
