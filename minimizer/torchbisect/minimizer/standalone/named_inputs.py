"""Tensors that a script makes in passing get names, so that something can be said of them afterwards.

``f(torch.ones(1, requires_grad=True)).backward()`` is shorter than the same with a name, so that is what shrinking
leaves; but what went wrong is in that tensor's ``grad``, and ``f(torch.ones(2))`` may differ in what ``f`` did to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.names import all_names, short_name
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Comprehension, children

# What an argument may lie in and still be one.
_HOLDS = (ast.List, ast.Tuple, ast.Dict, ast.keyword, ast.Starred)


def with_names(tree: ast.Module) -> ast.Module:
    """The script with a statement of its own for each tensor that would else be out of reach once it has been used.

    These are the leaves that take gradients, and the arguments of what isn't torch's own. Only the module's own
    statements are looked at.
    """
    taken, torch_names = all_names(tree), TorchNames.of(tree)
    edits, before = [], {}
    for statement in tree.body:
        if not isinstance(statement, (ast.Expr, ast.Assign)):
            continue
        made: list[ast.stmt] = []
        for call in _in_passing(statement.value, torch_names, named=isinstance(statement, ast.Assign)):
            name = short_name(taken)
            taken.add(name)
            made.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=copied(call), lineno=0))
            edits.append(Edit.of(call, ast.Name(id=name, ctx=ast.Load())))
        before[id(statement)] = made
    if not edits:
        return tree
    changed = apply(tree, edits)
    body = [item for old, new in zip(tree.body, changed.body) for item in (*before.get(id(old), ()), new)]
    return ast.Module(body=body, type_ignores=[])


def _in_passing(
    node: ast.AST, torch_names: TorchNames, *, named: bool = False, given: bool = False
) -> Iterator[ast.Call]:
    """Calls that make such a tensor, in the order in which they are made, none of them inside of another."""
    if isinstance(node, (ast.Lambda, *Comprehension)):
        return
    called = False
    if isinstance(node, ast.Call):
        torchs = ast.unparse(node.func).startswith("torch.")
        if not named and (_takes_gradients(node) or (given and torchs and not torch_names.is_compile(node))):
            yield node
            return
        called = not torchs or torch_names.is_compile(node.func)
    for child in children(node):
        passed_on = called and child is not getattr(node, "func", None)
        yield from _in_passing(child, torch_names, given=passed_on or (given and isinstance(node, _HOLDS)))


def _takes_gradients(call: ast.Call) -> bool:
    asked = any(item.arg == "requires_grad" and ast.unparse(item.value) == "True" for item in call.keywords)
    made = isinstance(call.func, ast.Attribute) and call.func.attr in ("Parameter", "requires_grad_")
    return asked or made
