"""An expression gives way to a constructor of what it came to: ``h = encoder(batch)`` to ``h = torch.randn(4, 8)``.

It cuts a data flow in the middle, which no deletion can do: all that only fed this value becomes unused. The trace
knows the shapes. All the assignments are tried from the last back, since a late cut takes all before it. Leaves what
the mismatch needs to be made by operations.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from torchbisect.core.trace import Trace
from torchbisect.minimizer.cleanup import attempt_and_clean
from torchbisect.minimizer.search import BATCH_AFTER, ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply_or_none, copied
from torchbisect.minimizer.syntax.scope import enclosing, references
from torchbisect.minimizer.syntax.tree import Function, count_nodes, expression, parents, walk
from torchbisect.minimizer.unused import without_unused


def run(search: ReductionSearch) -> None:
    """Each assignment from the back, with what becomes unused taken away in the same question.

    Where one wins after the other, more and more in one question.
    """
    trace, row = search.trace, 0
    if trace is None:
        return
    place: int | None = 0
    while place is not None:
        if row >= BATCH_AFTER:
            tree, made = _several(search.tree, trace, place, 2 ** (row - BATCH_AFTER + 1))
            if made > 1 and search.attempt(tree):
                row += 1
                continue
        won = attempt_and_clean(search, list(options(search.tree, trace)), place)
        row = row + 1 if won == place and row < BATCH_AFTER else 1
        place = won


def _several(tree: ast.Module, trace: Trace, place: int, most: int) -> tuple[ast.Module, int]:
    """A tree with several options from a place on, and what becomes unused taken away."""
    made = 0
    while made < most:
        edit = next(itertools.islice(options(tree, trace), place, None), None)
        following = None if edit is None else apply_or_none(tree, [edit])
        if following is None:
            break
        tree, made = without_unused(following, harmless=True), made + 1
    return tree, made


def options(tree: ast.Module, trace: Trace) -> Iterator[Edit]:
    """Each assignment whose value has a simpler text in the trace."""
    texts = {(value.line, value.name): value.text for value in trace.values}
    exact = {(value.line, value.name) for value in trace.values if value.exact}
    above = parents(tree)
    inside = {id(node) for function in walk(tree) if isinstance(function, Function) for node in walk(function)}
    for node in reversed(list(walk(tree))):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or node.end_lineno is None:
            continue
        name = ast.unparse(node.targets[0])
        text = texts.get((node.end_lineno, name))
        if isinstance(node.targets[0], (ast.Tuple, ast.List)):
            parts = [(node.end_lineno, ast.unparse(item)) for item in node.targets[0].elts]
            known = exact.issuperset(parts)
            spelled = _spelled_out(node, enclosing(above, node), [texts[part] for part in parts]) if known else None
            if spelled is not None:
                yield spelled
            text = f"({', '.join(texts[part] for part in parts)})" if known else None
        written = ast.unparse(node.value)
        if text is None or text == written or ".compile(" in written:
            continue
        try:
            value = expression(text)
        except SyntaxError:
            continue
        if count_nodes(value) <= max(count_nodes(node.value), 16):
            plain = _plain(text) if id(node) in inside else None
            if plain is not None:
                yield Edit.of(node.value, plain)
            yield Edit.of(node.value, value)
            if "requires_grad=True" in text and not isinstance(node.value, ast.BinOp):
                # As a leaf it can't be changed in place; what it came from could.
                yield Edit.of(node.value, ast.BinOp(left=value, op=ast.Mult(), right=ast.Constant(1)))


def _spelled_out(node: ast.Assign, scope: ast.AST, texts: list[str]) -> Edit | None:
    """``rows, columns = x.shape`` taken away and its names written as the numbers they were.

    A tuple of the numbers in the place of ``x.shape`` may be longer.
    """
    target, changes = node.targets[0], list[tuple[ast.AST, Replacement]]()
    assert isinstance(target, (ast.Tuple, ast.List))
    for item, text in zip(target.elts, texts):
        try:
            value = expression(text)
        except SyntaxError:
            return None
        mentions = references(scope, item.id) if isinstance(item, ast.Name) else []
        stored = sum(not isinstance(mention.ctx, ast.Load) for mention in mentions)
        if stored != 1 or not isinstance(value, ast.Constant):
            return None
        changes += [(use, copied(value)) for use in mentions if isinstance(use.ctx, ast.Load)]
    return Edit(((node, None), *changes))


def _plain(text: str) -> ast.expr | None:
    """``torch.ones(2, 3)`` for ``torch.randn(2, 3)``: what is compiled had better not draw random numbers."""
    for name in ("torch.randn(", "torch.rand("):
        if text.startswith(name):
            return expression(text.replace(name, "torch.ones(", 1))
    return None
