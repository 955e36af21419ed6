"""Fewer classes: one inside another gets out of it, one that adds nothing gives way, a lone subclass takes in its base.

``Experiment.Config`` and ``class Small(Experiment): pass`` are how a program is laid out. As long as a class lies in
another one, or is made through a second name, ``modules`` can't take it apart. Leaves classes whose name is taken
outside, and those of functions, which may be closures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.names import all_names
from torchbisect.minimizer.syntax.scope import bound_names, object_attributes
from torchbisect.minimizer.syntax.tree import parents, walk


def run(search: ReductionSearch) -> None:
    """As many as go in one question, then fewer."""
    search.scan_in_batches(options)


def options(tree: ast.Module) -> Iterator[Edit]:
    """Each class that can get out or give way, the outer ones first."""
    above = parents(tree)
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            if isinstance(above[id(node)], ast.ClassDef):
                yield from _out(tree, node, above)
            yield from _away(tree, node)
            yield from _taken_in(tree, node)


def _out(tree: ast.Module, inner: ast.ClassDef, above: dict[int, ast.AST]) -> Iterator[Edit]:
    """``Outer.Inner`` and ``self.Inner`` as ``Inner``, defined before the outermost class."""
    outermost = inner
    while isinstance(owner := above[id(outermost)], ast.ClassDef):
        outermost = owner
    if not isinstance(owner, ast.Module) or inner.name in all_names(tree, but=inner):
        return
    reads = [node for node in object_attributes(walk(tree)) if node.attr == inner.name]
    moved = ast.copy_location(ast.ClassDef(**{name: getattr(inner, name) for name in inner._fields}), inner)
    names = [(node, ast.Name(id=inner.name, ctx=ast.Load())) for node in reads]
    if names:
        yield Edit(((inner, None), (outermost, [moved, outermost]), *names))


def _away(tree: ast.Module, node: ast.ClassDef) -> Iterator[Edit]:
    """A class with one base and nothing of its own gives way to the base."""
    plain = all(isinstance(item, ast.Pass) for item in node.body) and not node.decorator_list and not node.keywords
    if plain and len(node.bases) == 1 and isinstance(node.bases[0], ast.Name):
        uses = [item for item in walk(tree) if isinstance(item, ast.Name) and item.id == node.name]
        yield Edit(((node, None), *((item, ast.Name(id=node.bases[0].id, ctx=item.ctx)) for item in uses)))


def _taken_in(tree: ast.Module, node: ast.ClassDef) -> Iterator[Edit]:
    """``class Small(Base)`` with what ``Base`` has and it hasn't, if nothing else names ``Base``.

    A call of ``super().__init__`` then reaches the base's base, which takes no arguments.
    """
    bases = [item for item in tree.body if isinstance(item, ast.ClassDef)]
    for base in bases:
        named = [item for item in walk(tree) if isinstance(item, ast.Name) and item.id == base.name]
        if len(named) != 1 or named[0] not in node.bases or base.decorator_list or base.keywords:
            continue
        own = {name for item in node.body for name in bound_names([item])}
        added = [item for item in base.body if bound_names([item]) and not bound_names([item]) & own]
        calls = [
            item for item in walk(node) if isinstance(item, ast.Call) and ast.unparse(item.func) == "super().__init__"
        ]
        given = [part for call in calls for part in (*call.args, *call.keywords)]
        bases_of = [(named[0], list[ast.AST](base.bases))]
        first = node.body[0]
        yield Edit(((base, None), *bases_of, (first, [*added, first]), *((part, None) for part in given)))
