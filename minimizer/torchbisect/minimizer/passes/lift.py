"""A tensor that is made inside the compiled function becomes its argument.

Cutting a data flow leaves constructors where the values were, which may be inside: ``def f(): x = torch.ones(1,
requires_grad=True)``. There they are traced like any operation, which is a slightly different program, and a
maintainer would look for the input. It costs a few nodes, so it comes last and steps up the order; nothing takes it
back. Leaves functions that are called in several places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.calls import only_call
from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.names import all_names, short_name
from torchbisect.minimizer.syntax.scope import parameters
from torchbisect.minimizer.syntax.torch_names import TENSOR_CONSTRUCTORS, TorchNames
from torchbisect.minimizer.syntax.tree import walk

_CONSTRUCTORS = TENSOR_CONSTRUCTORS.keys() - {"randint", "tensor"}


def run(search: ReductionSearch) -> None:
    """One tensor after the other, as long as the mismatch stays."""
    while any(search.attempt_rewrite(tree) for tree in _lifted(search.tree)):
        pass


def _lifted(tree: ast.Module) -> Iterator[ast.Module]:
    """The tree with one more argument, for each constructor in a function that is called in one place."""
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or function.args.vararg or function.args.kwonlyargs:
            continue
        call = only_call(tree, function)
        if call is None or call.keywords:
            continue
        for made in _made(function, TorchNames.of(tree)):
            name = short_name(all_names(function))
            new = copied(function.args)
            new.args.append(ast.arg(arg=name))
            longer = ast.Call(func=call.func, args=[*call.args, copied(made)], keywords=[])
            yield apply(
                tree, [Edit(((made, ast.Name(id=name, ctx=ast.Load())), (function.args, new))), Edit.of(call, longer)]
            )


def _made(function: ast.FunctionDef, torch_names: TorchNames) -> Iterator[ast.Call]:
    """Tensors that would be inputs: those that take gradients, or any if the function has no argument at all."""
    bare = not parameters(function.args)
    for statement in function.body:
        for node in walk(statement):
            if not isinstance(node, ast.Call):
                continue
            made = torch_names.constructor(node.func) in _CONSTRUCTORS
            if made and (bare or any(keyword.arg == "requires_grad" for keyword in node.keywords)):
                yield node
