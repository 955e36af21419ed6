"""An argument of an autograd function goes from its calls, from ``forward`` and from ``backward``'s result, together.

The three have to agree in number, and so have ``save_for_backward`` and the names that ``saved_tensors`` is unpacked
to; a change of one alone fails in eager. Leaves functions whose ``backward`` doesn't return a tuple that is written
out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.calls import without_parameter
from torchbisect.minimizer.syntax.edits import Edit, Replacement
from torchbisect.minimizer.syntax.tree import walk


def run(search: ReductionSearch) -> None:
    """What is saved first, since an argument may be there for that alone; from the last back."""
    search.scan(_saved)
    search.scan(_arguments)


def _functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef, dict[str, ast.FunctionDef]]]:
    for owner in walk(tree):
        if isinstance(owner, ast.ClassDef) and any(ast.unparse(base).endswith("Function") for base in owner.bases):
            yield owner, {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}


def _arguments(tree: ast.Module) -> Iterator[Edit]:
    for owner, methods in _functions(tree):
        forward, backward = methods.get("forward"), methods.get("backward")
        if forward is None:
            continue
        calls = [
            node
            for node in walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{owner.name}.apply"
        ]
        first = 0 if "setup_context" in methods else 1
        returned = [node for node in walk(backward) if isinstance(node, ast.Return)] if backward else []
        for number in reversed(range(first, len(forward.args.args))):
            changes: list[tuple[ast.AST, Replacement]] = [(forward.args, without_parameter(forward.args, number))]
            place = number - first
            changes += [(call.args[place], None) for call in calls if place < len(call.args)]
            tuples = [item.value for item in returned if isinstance(item.value, ast.Tuple)]
            for value in tuples:
                kept = [item for other, item in enumerate(value.elts) if other != place]
                if len(kept) < len(value.elts):
                    changes.append((value, kept[0] if len(kept) == 1 else ast.Tuple(elts=kept, ctx=ast.Load())))
            yield Edit(tuple(changes))


def _saved(tree: ast.Module) -> Iterator[Edit]:
    """One saved tensor fewer, on both sides."""
    for _, methods in _functions(tree):
        nodes = [node for method in methods.values() for node in walk(method)]
        saves = [
            node
            for node in nodes
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("save_for_backward")
        ]
        targets = [
            node.targets[0]
            for node in nodes
            if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(".saved_tensors")
        ]
        if len(saves) != 1 or len(targets) != 1 or not isinstance(targets[0], ast.Tuple):
            continue
        for number in reversed(range(min(len(saves[0].args), len(targets[0].elts)))):
            if len(saves[0].args) > 1:
                yield Edit.remove(saves[0].args[number], targets[0].elts[number])
