"""Replace a computation by the argument that it starts from, and make that require a gradient.

Before and after::

    layer = nn.Linear(1, 1)           def f(x):
    def f(x):                             return x.clone()
        return layer(x).clone()       f(torch.ones(1, requires_grad=True))
    f(torch.ones(1))

A layer is often there only because its parameters make its result require a gradient. Either change alone loses the
mismatch, so both go in one question. Functions that are called in several places stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.scope import bound_names, imported_names, only_call, parameters, variables_in
from torchbisect.minimizer.syntax.tree import Function, children
from torchbisect.minimizer.unused import attempt_and_clean

_COMPUTATIONS = (ast.Call, ast.BinOp)


def run(search: ReductionSearch) -> None:
    """Replace one computation after the other as long as one is accepted."""
    while attempt_and_clean(search, list(_promotions(search.tree))) is not None:
        pass


def _promotions(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits that replace a computation from a tensor that was made without a gradient."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            objects = bound_names(tree.body) - imported_names(tree) - {item.arg for item in parameters(function.args)}
            for name, made in _made_arguments(tree, function):
                yield from _promotions_of(function, name, made, objects)


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


def _promotions_of(function: ast.FunctionDef, name: str, made: ast.Call, objects: set[str]) -> Iterator[Edit]:
    """Return an edit for each operation that uses a parameter and one of the script's objects, the outer ones first."""
    if any(keyword.arg == "requires_grad" for keyword in made.keywords):
        return
    keyword = ast.keyword(arg="requires_grad", value=ast.Constant(value=True))
    leaf = ast.Call(func=made.func, args=made.args, keywords=[*made.keywords, keyword])
    for node in _operations(function):
        names = variables_in(node)
        # Arguments alone make nothing that requires a gradient.
        if name in names and names & objects:
            yield Edit(((node, ast.Name(id=name, ctx=ast.Load())), (made, leaf)))


def _operations(node: ast.AST) -> Iterator[ast.expr]:
    """Return the calls and operations in a node, except those of functions and classes inside it."""
    for child in children(node):
        if isinstance(child, _COMPUTATIONS):
            yield child
        if not isinstance(child, (*Function, ast.ClassDef, ast.Lambda)):
            yield from _operations(child)
