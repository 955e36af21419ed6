"""A tensor that is made inside the compiled function becomes its argument.

Cutting a data flow leaves constructors where the values were, which may be inside: ``def f(): x = torch.ones(1,
requires_grad=True)``. There they are traced like any operation, which is a slightly different program, and a
maintainer would look for the input. It costs a few nodes, so it comes last and steps up the order; nothing takes it
back. Leaves functions that are called in several places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import Search
from torchbisect.minimizer.syntax.calls import only_call
from torchbisect.minimizer.syntax.scope import bound_in, parameters
from torchbisect.minimizer.syntax.tree import Edit, apply, copied, walk

_CONSTRUCTORS = frozenset({"ones", "zeros", "rand", "randn", "eye", "arange", "linspace", "full", "empty"})


def run(search: Search) -> None:
    """One tensor after the other, as long as the mismatch stays."""
    while any(search.reworded(tree) for tree in _lifted(search.tree)):
        pass


def _lifted(tree: ast.Module) -> Iterator[ast.Module]:
    """The tree with one more argument, for each constructor in a function that is called in one place."""
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or function.args.vararg or function.args.kwonlyargs:
            continue
        call = only_call(tree, function)
        if call is None or call.keywords:
            continue
        for made in _made(function):
            name = _fresh(function)
            new = copied(function.args)
            new.args.append(ast.arg(arg=name))
            longer = ast.Call(func=call.func, args=[*call.args, copied(made)], keywords=[])
            yield apply(
                tree, [Edit(((made, ast.Name(id=name, ctx=ast.Load())), (function.args, new))), Edit.of(call, longer)]
            )


def _made(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Tensors that would be inputs: those that take gradients, or any if the function has no argument at all."""
    bare = not parameters(function.args)
    for statement in function.body:
        for node in walk(statement):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            made = ast.unparse(node.func.value) == "torch" and node.func.attr in _CONSTRUCTORS
            if made and (bare or any(keyword.arg == "requires_grad" for keyword in node.keywords)):
                yield node


def _fresh(function: ast.FunctionDef) -> str:
    taken = {item.arg for item in parameters(function.args)} | bound_in(function.body)
    taken |= {node.id for node in walk(function) if isinstance(node, ast.Name)}
    return next(name for name in ("x", "y", "z", "w", *(f"x{n}" for n in range(99))) if name not in taken)
