"""What is looked up in a registry is named: ``HOOKS[name]`` as ``shift``, and ``@hook("shift")`` goes.

A decorator that puts a function somewhere ties it, the place and the key together, and no deletion takes one of them
alone. Which of the registered ones is meant is not read off: each is tried. Leaves registries that hold what isn't
defined in the script.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchbisect.minimizer.cleanup import attempt_and_clean
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, walk

MOST = 8
"""How many are tried: a script may register dozens."""


def run(search: ReductionSearch) -> None:
    """One lookup after the other."""
    while attempt_and_clean(search, list(options(search.tree))[:MOST]) is not None:
        pass


def options(tree: ast.Module) -> Iterator[Edit]:
    """Each lookup in a container of the script's with each function or class that is decorated."""
    held = {
        target.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    torch_names = TorchNames.of(tree)
    definitions = [node for node in tree.body if isinstance(node, (*Function, ast.ClassDef))]
    registered = [node for node in definitions if _registering(node, torch_names)]
    for lookup in walk(tree):
        if _looks_up(lookup, held):
            keys = [item.value for item in walk(lookup) if isinstance(item, ast.Constant)]
            for node in sorted(registered, key=lambda node: not _registers(node, keys)):
                bare = ((item, None) for item in _registering(node, torch_names))
                yield Edit(((lookup, ast.Name(id=node.name, ctx=ast.Load())), *bare))


def _registering(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, torch_names: TorchNames
) -> list[ast.expr]:
    """The decorators that may put it somewhere: not what compiles it."""
    return [item for item in node.decorator_list if not torch_names.mentions_compile(item)]


def _registers(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, keys: Sequence[object]) -> bool:
    """Whether one of the keys is in a decorator, or the name: that is the likeliest."""
    written = [item.value for part in node.decorator_list for item in walk(part) if isinstance(item, ast.Constant)]
    return any(key in (*written, node.name) for key in keys)


def _looks_up(node: ast.AST, held: set[str]) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        place: ast.expr = node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        place = node.value
    else:
        return False
    return isinstance(place, ast.Name) and place.id in held
