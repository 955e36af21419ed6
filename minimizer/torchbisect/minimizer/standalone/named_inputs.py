"""Assign inline tensors to variables, so that assertions can refer to them.

Shrinking leaves ``f(torch.ones(1, requires_grad=True)).backward()``, because it is shorter without a name. But the
mismatch may be in that tensor's ``grad``, or in what ``f`` did to ``torch.ones(2)`` in ``f(torch.ones(2))``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.names import all_names, short_name
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Comprehension, children

_ARGUMENT_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.keyword, ast.Starred)
"""Nodes in which an element of an argument lies; the element is passed to the function too."""


def with_named_inputs(tree: ast.Module, *, only_leaves: bool = False) -> ast.Module:
    """Return the script with a statement of its own for each tensor that no name refers to after its use.

    These tensors are leaves that require a gradient and, unless ``only_leaves``, arguments of functions that are not
    torch's own. Only statements at module level are changed.
    """
    taken, torch_names = all_names(tree), TorchNames.of(tree)
    edits: list[Edit] = []
    assignments: dict[int, list[ast.stmt]] = {}
    for statement in tree.body:
        if not isinstance(statement, (ast.Expr, ast.Assign)):
            continue
        made: list[ast.stmt] = []
        for call in _inline_tensors(statement.value, torch_names, named=isinstance(statement, ast.Assign)):
            if only_leaves and not (isinstance(call, ast.Call) and _requires_grad(call)):
                continue
            name = short_name(taken)
            taken.add(name)
            made.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=copied(call), lineno=0))
            edits.append(Edit.of(call, ast.Name(id=name, ctx=ast.Load())))
        assignments[id(statement)] = made
    if not edits:
        return tree
    changed = apply(tree, edits)
    body = [item for old, new in zip(tree.body, changed.body) for item in (*assignments.get(id(old), ()), new)]
    return ast.Module(body=body, type_ignores=[])


def _inline_tensors(
    node: ast.AST, torch_names: TorchNames, *, named: bool = False, passed: bool = False
) -> Iterator[ast.expr]:
    """Yield the outermost expressions that make such a tensor, in the order in which they run.

    The value of the node is ``named`` by an assignment, or ``passed`` to a function that is not torch's own.
    """
    if isinstance(node, (ast.Lambda, *Comprehension)):
        return
    if passed and isinstance(node, (ast.Subscript, ast.Attribute)) and _is_view_of_new_tensor(node, torch_names):
        yield node
        return
    passes_arguments = False
    if isinstance(node, ast.Call):
        is_torchs = torch_names.starts_in_torch(node.func)
        compiles = torch_names.is_compile(node)
        if not named and (_requires_grad(node) or (passed and is_torchs and not compiles)):
            yield node
            return
        passes_arguments = not is_torchs or torch_names.is_compile(node.func)
    for child in children(node):
        is_argument = passes_arguments and child is not getattr(node, "func", None)
        is_element = passed and isinstance(node, _ARGUMENT_CONTAINERS)
        yield from _inline_tensors(child, torch_names, passed=is_argument or is_element)


def _is_view_of_new_tensor(node: ast.expr, torch_names: TorchNames) -> bool:
    """Tell whether an expression is a part of what a call of torch makes: ``torch.ones(4)[::2]``."""
    return torch_names.starts_in_torch(node) and any(isinstance(part, ast.Call) for part in _owners(node))


def _owners(node: ast.expr) -> Iterator[ast.expr]:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
        yield node


def _requires_grad(call: ast.Call) -> bool:
    requested = any(item.arg == "requires_grad" and ast.unparse(item.value) == "True" for item in call.keywords)
    return requested or (isinstance(call.func, ast.Attribute) and call.func.attr in ("Parameter", "requires_grad_"))
