"""Delete statements and the parts of statements, with no regard to their meaning.

Before and after::

    log("start")
    y = f(x, scale=2, mode="sum")

    y = f(x)

This is classic delta debugging on the syntax tree. Statements go in halves, level by level from the outermost, because
one statement there may be half of the script. They go from the back, because uses stand behind definitions. Parts that
are optional by nature (keywords, decorators, imported names, cases) go in halves over the whole script; other parts go
one by one. No list becomes empty, and no call loses its only argument: such candidates rarely show the same mismatch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.random_numbers import random_constructors, sets_seed
from torchbisect.minimizer.syntax.tensor_literals import tensor_literals
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, children, parents, preorder, walk


def statements(search: ReductionSearch) -> None:
    """Delete statements on every level, the outermost first."""
    depth = 0
    while _delete_level(search, depth):
        depth += 1


def outermost_statements(search: ReductionSearch) -> None:
    """Delete statements of the script itself: its main function often compares two runs where one would do."""
    _delete_level(search, 0)


def _delete_level(search: ReductionSearch, depth: int) -> bool:
    """Delete the statements of one level; return whether the level has any."""
    level = _statements_at(search.tree, depth)
    # The probe seeds every run, so a script that draws numbers would lose its seed, and fail by luck from then on.
    keeps_seed = bool(random_constructors(search.tree))
    search.delta_debug([Edit.remove(item) for item in level if not (keeps_seed and sets_seed(item))])
    return bool(level)


def _statements_at(tree: ast.Module, depth: int) -> list[ast.stmt]:
    """Return the statements inside ``depth`` others, in the order of the text."""
    found: list[ast.stmt] = []

    def collect(node: ast.AST, around: int) -> None:
        for child in children(node):
            if isinstance(child, ast.stmt) and around == depth:
                if not isinstance(child, ast.Pass):
                    found.append(child)
            else:
                collect(child, around + isinstance(child, ast.stmt))

    collect(tree, 0)
    return found


def decorators(search: ReductionSearch) -> None:
    """Delete decorators before all else: what they register is kept as if it were used."""
    search.delta_debug(list(_decorators(search.tree)))


def _decorators(tree: ast.Module) -> Iterator[Edit]:
    torch_names = TorchNames.of(tree)
    for node in preorder(tree):
        if isinstance(node, (*Function, ast.ClassDef)):
            yield from (Edit.remove(item) for item in node.decorator_list if _removable_decorator(item, torch_names))


def optional_parts(search: ReductionSearch) -> None:
    """Delete the optional parts in halves: keywords, decorators, bases, imported names, cases, handlers."""
    search.delta_debug(list(_optional_parts(search.tree)))


def elements(search: ReductionSearch) -> None:
    """Delete the other parts one by one: arguments, elements, operands, targets, slices, results."""
    search.scan(_other_parts)


def _optional_parts(tree: ast.Module) -> Iterator[Edit]:
    """Return edits that remove parts which are optional by nature."""
    yield from _decorators(tree)
    for node in preorder(tree):
        if isinstance(node, ast.Call):
            yield from (Edit.remove(keyword) for keyword in node.keywords if keyword.arg != "backend")
        elif isinstance(node, ast.ClassDef):
            # Modules and autograd functions keep their bases; other passes take them apart.
            plain = [base for base in node.bases if not ast.unparse(base).endswith(("Module", "Function"))]
            yield from (Edit.remove(item) for item in [*plain, *node.keywords])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (Edit.remove(alias) for alias in node.names)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield Edit.remove(node.msg)
        elif isinstance(node, ast.Raise) and node.cause is not None:
            yield Edit.remove(node.cause)
        elif isinstance(node, ast.Match) and len(node.cases) > 1:
            yield from (Edit.remove(case) for case in node.cases)
        elif isinstance(node, ast.Try) and len(node.handlers) > 1:
            yield from (Edit.remove(handler) for handler in node.handlers)


def _other_parts(tree: ast.Module) -> Iterator[Edit]:
    """Return edits that remove other parts: arguments, elements, operands, targets, slices, results."""
    above = parents(tree)
    slices = {id(item) for literal in tensor_literals(tree) for item in walk(literal)}
    for node in preorder(tree):
        if id(node) in slices:
            continue  # of all tensors of that shape together: ``shrink_literals``
        if isinstance(node, ast.Call):
            # Only the last argument: without another one, the rest would bind to other parameters.
            if len(node.args) > 1:
                yield Edit.remove(node.args[-1])
        elif isinstance(node, (ast.List, ast.Set)) and len(node.elts) > 1:
            yield from (Edit.remove(item) for item in reversed(node.elts))
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:
            # Unpacking to another number of targets always fails.
            if _is_unpacked(node, above[id(node)]):
                continue
            if _is_read(node):
                yield from (Edit.remove(item) for item in reversed(node.elts))
            if len(node.elts) == 2:
                yield from (Edit.of(node, item) for item in node.elts)
        elif isinstance(node, ast.Dict) and len(node.values) > 1:
            for number in reversed(range(len(node.values))):
                keys = [key for other, key in enumerate(node.keys) if other != number]
                values = [value for other, value in enumerate(node.values) if other != number]
                yield Edit.of(node, ast.Dict(keys=keys, values=values))
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) == 1 and _is_read(node):
            yield Edit.of(node, node.elts[0])
        elif isinstance(node, ast.Dict) and len(node.values) == 1:
            yield Edit.of(node, node.values[0])
        elif isinstance(node, (ast.MatchSequence, ast.MatchOr)) and len(node.patterns) > 1:
            yield from (Edit.remove(item) for item in reversed(node.patterns))
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
        elif isinstance(node, ast.Return) and node.value is not None and not _ends_function(node, above[id(node)]):
            yield Edit.remove(node.value)


def _removable_decorator(decorator: ast.expr, torch_names: TorchNames) -> bool:
    """Tell whether a decorator neither compiles nor is ``staticmethod``, which autograd functions have by custom."""
    return not torch_names.mentions_compile(decorator) and ast.unparse(decorator) != "staticmethod"


def _ends_function(node: ast.Return, owner: ast.AST) -> bool:
    """Tell whether a function ends with this statement; without a value it does what no statement does there."""
    return isinstance(owner, Function) and len(owner.body) > 1 and owner.body[-1] is node


def _is_unpacked(node: ast.expr, owner: ast.AST) -> bool:
    """Tell whether the elements are assigned to as many targets; each can then be a statement of its own."""
    return isinstance(owner, ast.Assign) and owner.value is node and isinstance(owner.targets[0], (ast.Tuple, ast.List))


def _is_read(node: ast.Tuple | ast.List | ast.Set) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
