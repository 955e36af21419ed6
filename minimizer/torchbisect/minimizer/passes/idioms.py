"""The same thing said the shorter way: ``torch.compile`` as decorator or call, plain constructors, no dead tails.

``torch.compile(f)`` of a function that is only compiled becomes its decorator; a function of one expression becomes a
lambda or what it calls, where that is shorter and it is used once; ``torch.randn`` becomes ``torch.ones`` where the
values don't matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.defects import class_members
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.scope import imported_names, references
from torchbisect.minimizer.syntax.side_effects import may_have_side_effects
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, preorder, walk


def run(search: ReductionSearch) -> None:
    """Constructors together and then one by one, then the compile call, then tails."""
    edits = list(_constructors(search.tree))
    if len(edits) > 1:
        search.delta_debug(edits)
    search.scan(_constructors)
    search.scan(_compiled)
    search.scan(_tails)


_PLAINER = {
    "randn": "ones",
    "rand": "ones",
    "zeros": "ones",
    "empty": "ones",
    "linspace": "ones",
    "arange": "ones",
    "full": "ones",
}


def _constructors(tree: ast.Module) -> Iterator[Edit]:
    """``torch.randn(2, 3)`` as ``torch.ones(2, 3)``; ``arange(4)`` and ``linspace(0, 1, 4)`` as ``ones(4)``."""
    for node in preorder(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        name = node.func.attr
        if name.endswith("_like") and name[:-5] in _PLAINER:
            new = "ones_like"
        elif name in _PLAINER and isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
            new = "ones"
        else:
            continue
        if name == new:
            continue
        args = {"linspace": node.args[2:3], "arange": node.args[:1], "full": node.args[:1]}.get(name, node.args)
        if args:
            func = ast.Attribute(value=node.func.value, attr=new, ctx=ast.Load())
            yield Edit.of(node, ast.Call(func=func, args=args, keywords=node.keywords))


def _compiled(tree: ast.Module) -> Iterator[Edit]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from _as_decorator(tree, node)
            yield from _as_lambda(tree, node)


def _compiling(node: ast.AST, name: str, torch_names: TorchNames) -> bool:
    """``torch.compile(name, ...)``."""
    return (
        isinstance(node, ast.Call)
        and torch_names.is_compile(node)
        and bool(node.args)
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == name
    )


def _as_decorator(tree: ast.Module, function: ast.FunctionDef) -> Iterator[Edit]:
    named = references(tree, function.name)
    torch_names = TorchNames.of(tree)
    calls = [node for node in walk(tree) if _compiling(node, function.name, torch_names)]
    if len(named) == 1 and len(calls) == 1 and not function.decorator_list:
        call = calls[0]
        assert isinstance(call, ast.Call)
        decorator: ast.expr = ast.Call(func=call.func, args=[], keywords=call.keywords) if call.keywords else call.func
        new = ast.FunctionDef(
            name=function.name, args=function.args, body=function.body, decorator_list=[decorator], returns=None
        )
        yield Edit(((function, new), (call, ast.Name(id=function.name, ctx=ast.Load()))))


def _as_lambda(tree: ast.Module, function: ast.FunctionDef) -> Iterator[Edit]:
    """A function of one expression that is only handed to ``torch.compile``."""
    named = references(tree, function.name)
    if len(named) != 1 or function.decorator_list or len(function.body) != 1:
        return
    torch_names = TorchNames.of(tree)
    if not any(_compiling(node, function.name, torch_names) for node in walk(tree)):
        return
    only = function.body[0]
    value = only.value if isinstance(only, (ast.Return, ast.Expr)) else None
    if value is not None:
        yield Edit(((function, None), (named[0], ast.Lambda(args=function.args, body=value))))
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.keywords:
            given = [item.arg for item in function.args.args]
            if given == [item.id for item in value.args if isinstance(item, ast.Name)] and len(given) == len(
                value.args
            ):
                yield Edit(((function, None), (named[0], value.func)))


def _tails(tree: ast.Module) -> Iterator[Edit]:
    """``return x`` at the end of a function whose value nobody takes; ``y = f(x)`` with a ``y`` that nobody reads."""
    reads = {node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    imported, methods = imported_names(tree), class_members(tree)
    for node in preorder(tree):
        unread = isinstance(node, ast.Assign) and all(
            isinstance(item, ast.Name) and item.id not in reads for item in node.targets
        )
        # What has no effect goes as a whole, as unused.
        if isinstance(node, ast.Assign) and unread and may_have_side_effects(node.value, imported, methods):
            yield Edit.of(node, ast.Expr(node.value))
        if isinstance(node, Function) and len(node.body) > 1 and isinstance(node.body[-1], ast.Return):
            yield Edit.remove(node.body[-1])
