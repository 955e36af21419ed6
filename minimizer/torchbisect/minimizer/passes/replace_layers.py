"""A layer gives way to what it computes: ``nn.Linear(4, 4)(x)`` to ``x @ w``, or to ``x``; a parameter to a tensor.

Layers hide the one operation that matters behind a module with weights and an initialisation. Leaves layers that are
named elsewhere than in calls, and those whose operation has no shorter name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, copied
from torchbisect.minimizer.syntax.tree import walk


def run(search: ReductionSearch) -> None:
    """One by one."""
    search.scan(options)


def options(tree: ast.Module) -> Iterator[Edit]:
    """Each layer that is made by an assignment and called, and each parameter."""
    for node in walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if called.split(".")[0] in ("nn", "torch") and called.split(".")[-1][:1].isupper():
                yield from _layer(tree, node, node.value, called)
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("nn.Parameter"):
            inner = node.args[0]
            yield Edit.of(node, inner)
            if isinstance(inner, ast.Call):
                yield Edit.of(node, _with_gradient(inner.func, inner.args, inner.keywords))


def _layer(tree: ast.Module, assign: ast.Assign, call: ast.Call, called: str) -> Iterator[Edit]:
    target = assign.targets[0]
    name = ast.unparse(target)
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == name and node.args]
    if calls and len(_reads(tree, name)) == len(calls):
        yield Edit(((assign, None), *((node, node.args[0]) for node in calls)))
        if called.endswith("Linear") and len(call.args) >= 2:
            weight = _with_gradient(_dotted("torch", "ones"), list(call.args[:2]), [])
            products = [(node, ast.BinOp(left=node.args[0], op=ast.MatMult(), right=_loaded(target))) for node in calls]
            yield Edit(((call, weight), *products))


def _reads(tree: ast.Module, name: str) -> list[ast.expr]:
    return [
        node
        for node in walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == name
    ]


def _with_gradient(func: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]) -> ast.Call:
    return ast.Call(
        func=func, args=args, keywords=[*keywords, ast.keyword(arg="requires_grad", value=ast.Constant(True))]
    )


def _dotted(module: str, name: str) -> ast.expr:
    return ast.Attribute(value=ast.Name(id=module, ctx=ast.Load()), attr=name, ctx=ast.Load())


def _loaded(target: ast.expr) -> ast.expr:
    new = copied(target)
    if isinstance(new, (ast.Name, ast.Attribute)):
        new.ctx = ast.Load()
    return new
