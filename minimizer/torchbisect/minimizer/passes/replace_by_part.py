"""Replace an expression by a part of itself.

Before and after::

    y = torch.relu(x @ w) + 1         y = x @ w

An operation gives way to an operand, the outermost first, where most is won; a call to an argument or, for a method, to
its object. It never gives way to the function that is called: a function in the place of a tensor is another program
that may fail with the same words. Nor does it give way to a size, for the same reason. What is called itself gives way
to the object of its method alone, as in ``Model().eval()(x)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Comprehension, parents, product, walk

_EFFECTS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Subscript)
_NUMBER_FUNCTIONS = frozenset({"abs", "float", "int", "max", "min", "pow", "round", "sum"})
_SIZE_METHODS = frozenset(
    ("chunk", "expand", "flatten", "mean", "movedim", "narrow", "permute", "repeat", "reshape", "roll", "size", "split")
    + ("squeeze", "sum", "swapaxes", "t", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view")
)
"""Methods of tensors whose arguments are sizes and dimensions, never a tensor."""
_CONTENT_METHODS = (
    "named_",
    "parameters",
    "modules",
    "children",
    "items",
    "values",
    "keys",
    "state_dict",
    "parse_args",
)
"""First parts of the names of methods that return the contents of an object; the object is no substitute for them."""


def run(search: ReductionSearch) -> None:
    """Replace one expression after the other."""
    search.scan(_expression_edits)


def _expression_edits(tree: ast.Module) -> Iterator[Edit]:
    above = parents(tree)
    modules = {alias.asname or alias.name.split(".")[0] for node in walk(tree) if isinstance(node, ast.Import)
               for alias in node.names}  # fmt: skip
    modules |= {"nn", "F"}
    torch_names = TorchNames.of(tree)
    for node in walk(tree):
        if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            continue
        owner = above.get(id(node))
        is_called = isinstance(owner, ast.Call) and owner.func is node
        if isinstance(owner, ast.Call) and not is_called and ast.unparse(owner.func) == "next":
            continue
        for part in _object_of_method(node, modules) if is_called else _parts(node, modules, torch_names):
            if isinstance(part, ast.Name) and (part.id in ("self", "cls", "ctx") or _is_target(part, node, owner)):
                continue
            # A statement without an effect is not tried: the delete pass removes statements.
            if not isinstance(owner, ast.Expr) or any(isinstance(inner, _EFFECTS) for inner in walk(part)):
                yield Edit.of(node, part)


def _is_target(part: ast.Name, node: ast.expr, owner: ast.AST | None) -> bool:
    """Tell whether the part would be assigned to itself, which the delete pass does by removing the statement."""
    if not isinstance(owner, ast.Assign) or owner.value is not node or len(owner.targets) != 1:
        return False
    return isinstance(owner.targets[0], ast.Name) and owner.targets[0].id == part.id


def _parts(node: ast.expr, modules: set[str], torch_names: TorchNames) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        if not torch_names.is_compile(node):
            method = isinstance(node.func, ast.Attribute) and not _is_in_module(node.func.value, modules)
            yield from _object_of_method(node, modules)
            given = [item.value if isinstance(item, ast.Starred) else item for item in node.args]
            yield from (item for item in given if _may_replace_call(item, node.func))
            yield from _iterated(node)
            yield from (keyword.value for keyword in node.keywords if isinstance(keyword.value, (ast.Name, ast.Call)))
            if method or _is_in_module(node.func, {"torch"}):
                # The call may only have to make a new tensor, and a product is the plainest that does.
                operands = [node.func.value, *given] if isinstance(node.func, ast.Attribute) and method else given
                yield from (product(item, ast.Constant(1)) for item in operands if isinstance(item, ast.Name))
    elif isinstance(node, ast.BinOp):
        yield node.left
        yield node.right
        if not isinstance(node.op, ast.MatMult):
            # The operation may be needed, and only its other operand may not be.
            others = [item for item in (node.left, node.right) if not isinstance(item, ast.Constant)]
            if len(others) == 2:
                yield ast.BinOp(left=node.left, op=node.op, right=ast.Constant(2))
                yield ast.BinOp(left=node.right, op=node.op, right=ast.Constant(2))
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1:
        yield node.elts[0]
    elif isinstance(node, ast.IfExp):
        # The condition may be what goes wrong. A product shows it, whatever the two values are.
        yield product(node.orelse, node.test)
        yield product(node.body, node.test)
    elif isinstance(node, ast.Compare):
        yield node.left
        yield from node.comparators
    elif isinstance(node, ast.Subscript):
        yield node.value
        if isinstance(node.slice, (ast.Call, ast.Subscript)):
            yield node.slice
    elif isinstance(node, ast.Attribute):
        if not _is_in_module(node.value, modules) and not isinstance(node.value, ast.Name):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
    elif isinstance(node, (ast.Await, ast.NamedExpr, ast.FormattedValue)):
        yield node.value
    elif isinstance(node, Comprehension) and not isinstance(node, ast.DictComp):
        yield node.generators[0].iter


def _object_of_method(node: ast.expr, modules: set[str]) -> Iterator[ast.expr]:
    """Yield ``x`` for ``x.method()``, unless the method returns the contents of the object."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if not _is_in_module(node.func.value, modules) and not node.func.attr.startswith(_CONTENT_METHODS):
        yield node.func.value


_ITERATION = frozenset({"enumerate", "iter", "list", "next", "reversed", "set", "sorted", "tuple"})


def _iterated(node: ast.Call) -> Iterator[ast.expr]:
    """Return ``x`` for ``next(iter(x))``: the call inside is there for the other one, and means nothing alone."""
    inner = node.args[0] if len(node.args) == 1 else None
    if not isinstance(inner, ast.Call) or len(inner.args) != 1:
        return
    if {ast.unparse(node.func), ast.unparse(inner.func)} <= _ITERATION:
        yield inner.args[0]


def _may_replace_call(argument: ast.expr, func: ast.expr) -> bool:
    """Tell whether an argument is of the kind of its call's result: a number is not what a tensor is made from."""
    if isinstance(func, ast.Attribute) and func.attr in _SIZE_METHODS and not _is_in_module(func.value, {"torch"}):
        return False
    number = isinstance(argument, ast.Constant) and isinstance(argument.value, (int, float))
    return not number or ast.unparse(func) in _NUMBER_FUNCTIONS or ast.unparse(func).startswith("math.")


def _is_in_module(node: ast.expr, modules: set[str]) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in modules
