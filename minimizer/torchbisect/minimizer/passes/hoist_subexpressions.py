"""An expression gives way to a part of itself: ``relu(x @ w)`` to ``x @ w``, that to ``x``.

Outermost first, where the win is biggest. A call gives way to its arguments or, for a method, to the object; never to
the function that is called: a function standing where a tensor was is a different program that may fail in the same
words. Nor to a size or another number that a tensor was made from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Comprehension, parents, walk


def run(search: ReductionSearch) -> None:
    """One by one."""
    search.scan(options)


_ACTS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_NUMBERS = frozenset({"abs", "float", "int", "max", "min", "pow", "round", "sum"})
_SIZED = frozenset(
    ("chunk", "expand", "flatten", "mean", "movedim", "narrow", "permute", "repeat", "reshape", "roll", "size", "split")
    + ("squeeze", "sum", "swapaxes", "t", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view")
)
"""Methods of tensors whose arguments are sizes and dimensions, never a tensor that could stand for the result."""
_VIEWS = ("named_", "parameters", "modules", "children", "items", "values", "keys", "state_dict", "parse_args")
"""How methods begin that give what is in an object, for which the object can't stand."""


def options(tree: ast.Module) -> Iterator[Edit]:
    """Each expression with each part that may stand for it."""
    above = parents(tree)
    modules = {alias.asname or alias.name.split(".")[0] for node in walk(tree) if isinstance(node, ast.Import)
               for alias in node.names}  # fmt: skip
    modules |= {"nn", "F"}
    torch_names = TorchNames.of(tree)
    for node in walk(tree):
        if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            continue
        owner = above.get(id(node))
        if isinstance(owner, ast.Call) and (owner.func is node or ast.unparse(owner.func) == "next"):
            continue
        for part in _parts(node, modules, torch_names):
            if isinstance(part, ast.Name) and part.id in ("self", "cls", "ctx"):
                continue
            # A statement that does nothing is none, and those are deleted elsewhere.
            if not isinstance(owner, ast.Expr) or any(isinstance(inner, _ACTS) for inner in walk(part)):
                yield Edit.of(node, part)


def _parts(node: ast.expr, modules: set[str], torch_names: TorchNames) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        if not torch_names.is_compile(node):
            method = isinstance(node.func, ast.Attribute) and not _module(node.func.value, modules)
            if method and isinstance(node.func, ast.Attribute) and not node.func.attr.startswith(_VIEWS):
                yield node.func.value
            given = [item.value if isinstance(item, ast.Starred) else item for item in node.args]
            yield from (item for item in given if _may_stand(item, node.func))
            yield from (keyword.value for keyword in node.keywords if isinstance(keyword.value, (ast.Name, ast.Call)))
    elif isinstance(node, ast.BinOp):
        yield node.left
        yield node.right
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare):
        yield node.left
        yield from node.comparators
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.Attribute):
        if not _module(node.value, modules) and not isinstance(node.value, ast.Name):
            yield node.value
    elif isinstance(node, (ast.Await, ast.NamedExpr, ast.FormattedValue)):
        yield node.value
    elif isinstance(node, Comprehension) and not isinstance(node, ast.DictComp):
        yield node.generators[0].iter


def _may_stand(argument: ast.expr, func: ast.expr) -> bool:
    """Whether a call's argument is of the kind of its result: a number isn't what a tensor is made from it."""
    if isinstance(func, ast.Attribute) and func.attr in _SIZED and not _module(func.value, {"torch"}):
        return False
    number = isinstance(argument, ast.Constant) and isinstance(argument.value, (int, float))
    return not number or ast.unparse(func) in _NUMBERS or ast.unparse(func).startswith("math.")


def _module(node: ast.expr, modules: set[str]) -> bool:
    """Whether a dotted name begins at an imported module."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in modules
