"""A result gives way to one of the function's own arguments: ``return torch.cat((a * cos, b))`` to ``return x``.

Going to a part of an expression can't reach an argument that isn't in it, or that has another shape on its way. What
led to the result becomes unused and goes in the same question. Leaves results that have to be computed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.cleanup import attempt_and_clean
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.scope import parameters
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, walk

MOST = 3
"""How many parameters are tried: the tensors come first by custom."""


def run(search: ReductionSearch) -> None:
    """From the last result of each function back."""
    place: int | None = 0
    while place is not None:
        place = attempt_and_clean(search, list(options(search.tree)), place)


def options(tree: ast.Module) -> Iterator[Edit]:
    """Each result with each parameter."""
    torch_names = TorchNames.of(tree)
    for function in walk(tree):
        if not isinstance(function, Function):
            continue
        names = [item.arg for item in parameters(function.args) if item.arg not in ("self", "cls", "ctx")][:MOST]
        values: list[ast.expr] = []
        for node in walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                values += [part for part in parts if not isinstance(part, (ast.Name, ast.Constant, ast.Attribute))]
        for value in reversed(values):
            if not torch_names.mentions_compile(value):
                yield from (Edit.of(value, ast.Name(id=name, ctx=ast.Load())) for name in names)
                if function.name == "backward" and len(names) == 1:
                    # The gradient handed through may hide that backward wasn't called; twice the gradient can't.
                    twice = ast.BinOp(left=ast.Name(id=names[0], ctx=ast.Load()), op=ast.Mult(), right=ast.Constant(2))
                    yield Edit.of(value, twice)
