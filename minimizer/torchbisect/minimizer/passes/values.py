"""An expression gives way to a constructor of what it came to: ``h = encoder(batch)`` to ``h = torch.randn(4, 8)``.

It cuts a data flow in the middle, which no deletion can do: all that only fed this value becomes unused. The trace
knows the shapes. All the assignments are tried from the last back, since a late cut takes all before it. Leaves what
the mismatch needs to be made by operations.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.passes.shortcuts import swept
from torchbisect.minimizer.search import Search
from torchbisect.minimizer.tree import Edit, expression, nodes, walk


def run(search: Search) -> None:
    """Each assignment from the back, with what becomes unused taken away in the same question."""
    place: int | None = 0
    while place is not None:
        place = swept(search, list(options(search)), place)


def options(search: Search) -> Iterator[Edit]:
    """Each assignment whose value has a simpler text in the trace."""
    if search.trace is None:
        return
    texts = {(value.line, value.name): value.text for value in search.trace.values}
    for node in reversed(list(walk(search.tree))):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or node.end_lineno is None:
            continue
        name = ast.unparse(node.targets[0])
        text = texts.get((node.end_lineno, name))
        written = ast.unparse(node.value)
        if text is None or text == written or ".compile(" in written:
            continue
        try:
            value = expression(text)
        except SyntaxError:
            continue
        if nodes(value) <= max(nodes(node.value), 16):
            yield Edit.of(node.value, value)
            if "requires_grad=True" in text and not isinstance(node.value, ast.BinOp):
                # As a leaf it can't be changed in place; what it came from could.
                yield Edit.of(node.value, ast.BinOp(left=value, op=ast.Mult(), right=ast.Constant(1)))
