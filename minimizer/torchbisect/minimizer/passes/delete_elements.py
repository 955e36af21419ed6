"""Delete the parts of statements: arguments, keywords, decorators, bases, elements of lists, operands, targets.

From the back and in halves over the whole script for those that are optional by their nature (keywords, decorators);
one by one for the others. Leaves the arguments that the mismatch needs. Never empties a list that had elements, never
takes the only argument of a call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, parents, preorder


def run(search: ReductionSearch) -> None:
    """The optional parts by halves, then the rest one by one."""
    search.delta_debug(list(_optional(search.tree)))
    search.scan(_single)


def _optional(tree: ast.Module) -> Iterator[Edit]:
    torch_names = TorchNames.of(tree)
    for node in preorder(tree):
        if isinstance(node, ast.Call):
            yield from (Edit.remove(keyword) for keyword in node.keywords if keyword.arg != "backend")
        elif isinstance(node, (*Function, ast.ClassDef)):
            yield from (Edit.remove(item) for item in node.decorator_list if _dispensable(item, torch_names))
            if isinstance(node, ast.ClassDef):
                # What a module or an autograd function is without its base is for other passes.
                plain = [base for base in node.bases if not ast.unparse(base).endswith(("Module", "Function"))]
                yield from (Edit.remove(item) for item in [*plain, *node.keywords])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (Edit.remove(alias) for alias in node.names)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield Edit.remove(node.msg)
        elif isinstance(node, ast.Raise) and node.cause is not None:
            yield Edit.remove(node.cause)


def _single(tree: ast.Module) -> Iterator[Edit]:
    above = parents(tree)
    for node in preorder(tree):
        if isinstance(node, ast.Call):
            # Only the last: what is left in the middle would bind to other parameters.
            if len(node.args) > 1:
                yield Edit.remove(node.args[-1])
        elif isinstance(node, (ast.List, ast.Set)) and len(node.elts) > 1:
            yield from (Edit.remove(item) for item in reversed(node.elts))
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:
            # Another number of targets than of values fails for certain.
            if _unpacked(node, above[id(node)]):
                continue
            if _read(node):
                yield from (Edit.remove(item) for item in reversed(node.elts))
            if len(node.elts) == 2:
                yield from (Edit.of(node, item) for item in node.elts)
        elif isinstance(node, ast.Dict) and len(node.values) > 1:
            for number in reversed(range(len(node.values))):
                keys = [key for other, key in enumerate(node.keys) if other != number]
                values = [value for other, value in enumerate(node.values) if other != number]
                yield Edit.of(node, ast.Dict(keys=keys, values=values))
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) == 1 and _read(node):
            yield Edit.of(node, node.elts[0])
        elif isinstance(node, ast.Dict) and len(node.values) == 1:
            yield Edit.of(node, node.values[0])
        elif isinstance(node, ast.BoolOp):
            yield from (Edit.remove(item) for item in reversed(node.values))
        elif isinstance(node, ast.Assign) and len(node.targets) > 1:
            yield from (Edit.remove(item) for item in node.targets)
        elif isinstance(node, ast.Slice):
            yield from (Edit.remove(item) for item in (node.step, node.upper, node.lower) if item is not None)
        elif isinstance(node, (ast.Global, ast.Nonlocal)) and len(node.names) > 1:
            for name in node.names:
                yield Edit.of(node, type(node)(names=[other for other in node.names if other != name]))
        elif isinstance(node, ast.comprehension):
            yield from (Edit.remove(item) for item in node.ifs)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield Edit.remove(node.value)


def _dispensable(decorator: ast.expr, torch_names: TorchNames) -> bool:
    """Not what compiles; nor ``staticmethod``, which autograd functions have by custom even where they work without."""
    return not torch_names.mentions_compile(decorator) and ast.unparse(decorator) != "staticmethod"


def _unpacked(node: ast.expr, owner: ast.AST) -> bool:
    """Whether the elements are assigned to as many targets, each of which can be a statement of its own."""
    return isinstance(owner, ast.Assign) and owner.value is node and isinstance(owner.targets[0], (ast.Tuple, ast.List))


def _read(node: ast.Tuple | ast.List | ast.Set) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
