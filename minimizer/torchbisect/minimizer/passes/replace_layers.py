"""Replace a layer by what it computes, and a parameter by a tensor.

Before and after::

    lin = nn.Linear(4, 2)             lin = torch.ones(4, 2, requires_grad=True)
    keep(lin(x))                      keep(x @ lin)

A layer hides the one operation that matters. Most give way to their input.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, copied
from torchbisect.minimizer.syntax.tree import product, walk


def run(search: ReductionSearch) -> None:
    """Replace one layer or parameter after the other."""
    search.scan(_layer_edits)


def _layer_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits of each layer that is assigned and called, and of each parameter."""
    for node in walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if called.split(".")[0] in ("nn", "torch") and called.split(".")[-1][:1].isupper():
                yield from _edits_of_layer(tree, node, node.value, called)
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("nn.Parameter"):
            inner = node.args[0]
            yield Edit.of(node, inner)
            if isinstance(inner, ast.Call):
                yield Edit.of(node, _with_gradient(inner.func, inner.args, inner.keywords))


def _edits_of_layer(tree: ast.Module, assign: ast.Assign, call: ast.Call, called: str) -> Iterator[Edit]:
    """Return the edits that replace a layer's calls by their input, by a product with 1, or a linear layer's by one."""
    target = assign.targets[0]
    name = ast.unparse(target)
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == name and node.args]
    if calls and len(_reads_of(tree, name)) == len(calls):
        yield Edit(((assign, None), *((node, node.args[0]) for node in calls)))
        # A function that only returns what it is given is not compiled.
        plain = [(node, product(node.args[0], ast.Constant(1))) for node in calls]
        yield Edit(((assign, None), *plain))
        if called.endswith("Linear") and len(call.args) >= 2:
            weight = _with_gradient(_dotted("torch", "ones"), list(call.args[:2]), [])
            products = [
                (node, ast.BinOp(left=node.args[0], op=ast.MatMult(), right=_as_read(target))) for node in calls
            ]
            yield Edit(((call, weight), *products))


def _reads_of(tree: ast.Module, name: str) -> list[ast.expr]:
    return [
        node
        for node in walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == name
    ]


def _with_gradient(func: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]) -> ast.Call:
    """Return a call that makes a tensor which requires a gradient."""
    return ast.Call(
        func=func, args=args, keywords=[*keywords, ast.keyword(arg="requires_grad", value=ast.Constant(True))]
    )


def _dotted(module: str, name: str) -> ast.expr:
    return ast.Attribute(value=ast.Name(id=module, ctx=ast.Load()), attr=name, ctx=ast.Load())


def _as_read(target: ast.expr) -> ast.expr:
    new = copied(target)
    if isinstance(new, (ast.Name, ast.Attribute)):
        new.ctx = ast.Load()
    return new
