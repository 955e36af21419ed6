"""Replace a computation inside a function by one of the function's arguments.

Before and after::

    def f(x, y):                      def f(x):
        a = x.cos()                       return x
        return torch.cat((a * y, a))

Replacing an expression by its part cannot reach an argument that has another shape on its way. ``results`` replaces
what a function returns; what led to it becomes unused and goes in the same question.

``inputs`` replaces ``layer(x)`` by ``x`` and makes ``x`` require a gradient, in one question. A layer is often
there only because its parameters make its result require one. Either change alone loses the mismatch.

Results that have to be computed stay, as the oracle tells, and so do functions that are called in several places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.scope import only_call, parameters
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, children, walk
from torchbisect.minimizer.unused import attempt_and_clean

MOST_PARAMETERS = 3
"""The most parameters that are tried; by custom the tensors come first."""


def results(search: ReductionSearch) -> None:
    """Replace the results of each function from the last one back."""
    place: int | None = 0
    while place is not None:
        place = attempt_and_clean(search, list(_argument_results(search.tree)), place)


def _argument_results(tree: ast.Module) -> Iterator[Edit]:
    torch_names = TorchNames.of(tree)
    for function in walk(tree):
        if not isinstance(function, Function):
            continue
        names = [item.arg for item in parameters(function.args) if item.arg not in ("self", "cls", "ctx")][
            :MOST_PARAMETERS
        ]
        values: list[ast.expr] = []
        for node in walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                values += [part for part in parts if not isinstance(part, (ast.Name, ast.Constant, ast.Attribute))]
        for value in reversed(values):
            if not torch_names.mentions_compile(value):
                yield from (Edit.of(value, ast.Name(id=name, ctx=ast.Load())) for name in names)
                if function.name == "backward" and len(names) == 1:
                    # The gradient itself may hide that ``backward`` was not called; twice the gradient does not.
                    twice = ast.BinOp(left=ast.Name(id=names[0], ctx=ast.Load()), op=ast.Mult(), right=ast.Constant(2))
                    yield Edit.of(value, twice)


_COMPUTATIONS = (ast.Call, ast.BinOp)


def inputs(search: ReductionSearch) -> None:
    """Replace one computation after the other as long as one is accepted."""
    while attempt_and_clean(search, list(_promotions(search.tree))) is not None:
        pass


def _promotions(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits that replace a computation from a tensor that was made without a gradient."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            for name, made in _made_arguments(tree, function):
                yield from _promotions_of(function, name, made)


def _made_arguments(tree: ast.Module, function: ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    """Return each parameter whose only argument is made by a call of torch, there or on a module-level line."""
    call = only_call(tree, function)
    if call is None:
        return
    bound = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    for parameter, value in zip(function.args.args, call.args, strict=False):
        made = bound.get(value.id) if isinstance(value, ast.Name) else value
        if isinstance(made, ast.Call) and ast.unparse(made.func).startswith("torch."):
            yield parameter.arg, made


def _promotions_of(function: ast.FunctionDef, name: str, made: ast.Call) -> Iterator[Edit]:
    """Return an edit for each operation of a function that uses a parameter, the outer ones first."""
    if any(keyword.arg == "requires_grad" for keyword in made.keywords):
        return
    keyword = ast.keyword(arg="requires_grad", value=ast.Constant(value=True))
    leaf = ast.Call(func=made.func, args=made.args, keywords=[*made.keywords, keyword])
    for node in _operations(function):
        if any(isinstance(part, ast.Name) and part.id == name for part in walk(node)):
            yield Edit(((node, ast.Name(id=name, ctx=ast.Load())), (made, leaf)))


def _operations(node: ast.AST) -> Iterator[ast.expr]:
    """Return the calls and operations in a node, except those of functions and classes inside it."""
    for child in children(node):
        if isinstance(child, _COMPUTATIONS):
            yield child
        if not isinstance(child, (*Function, ast.ClassDef, ast.Lambda)):
            yield from _operations(child)
