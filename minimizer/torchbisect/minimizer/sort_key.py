"""The one total order on candidates: what the minimizer calls smaller."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchbisect.minimizer.syntax.tree import walk


@dataclass(frozen=True, order=True)
class Measure:
    """A candidate's place in the order: fewer nodes, then fewer names, then shorter text, then the text itself.

    The text comes last so that no two candidates are equal, and so that of ``f(1)`` and ``f(8)`` the first is smaller.
    """

    nodes: int
    names: int
    length: int
    text: str


def measure(tree: ast.AST, text: str) -> Measure:
    """The measure of a tree whose text is known."""
    count = 0
    names: set[str] = set()
    for node in walk(tree):
        count += 1
        for field in ("id", "name", "arg", "attr", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                names.add(value)
    return Measure(count, len(names), len(text), text)
