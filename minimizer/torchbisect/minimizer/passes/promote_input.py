"""What is computed from an argument gives way to the argument itself, made to take gradients: ``layer(x)`` to ``x``.

A layer is often there only because its parameters make its result need a gradient. Going to the part alone loses that,
and so does asking for the gradient alone; this does both in one question. Leaves what has to be computed, and functions
that are called in several places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.cleanup import attempt_and_clean
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.calls import only_call
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.tree import Function, children, walk

_COMPUTED = (ast.Call, ast.BinOp)


def run(search: ReductionSearch) -> None:
    """One after the other, as long as the mismatch stays; what becomes unused goes with it."""
    while attempt_and_clean(search, list(options(search.tree))) is not None:
        pass


def options(tree: ast.Module) -> Iterator[Edit]:
    """Each computation from a tensor that was made without a gradient."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            for name, made in _arguments(tree, function):
                yield from _computed(function, name, made)


def _arguments(tree: ast.Module, function: ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    """Each parameter whose one argument is made by a call of torch's, there or on a line of the module's."""
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


def _computed(function: ast.FunctionDef, name: str, made: ast.Call) -> Iterator[Edit]:
    """Each call or operation in a function in which a parameter stands, the outer ones first."""
    if any(keyword.arg == "requires_grad" for keyword in made.keywords):
        return
    keyword = ast.keyword(arg="requires_grad", value=ast.Constant(value=True))
    leaf = ast.Call(func=made.func, args=made.args, keywords=[*made.keywords, keyword])
    for node in _operations(function):
        if any(isinstance(part, ast.Name) and part.id == name for part in walk(node)):
            yield Edit(((node, ast.Name(id=name, ctx=ast.Load())), (made, leaf)))


def _operations(node: ast.AST) -> Iterator[ast.expr]:
    """The calls and operations in a node, but not those of functions and classes inside it."""
    for child in children(node):
        if isinstance(child, _COMPUTED):
            yield child
        if not isinstance(child, (*Function, ast.ClassDef, ast.Lambda)):
            yield from _operations(child)
