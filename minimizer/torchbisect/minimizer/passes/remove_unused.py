"""Remove imports, definitions, assignments, methods, fields and annotations that nothing uses.

Before and after::

    import os
    def helper(x: int):
        return os.sep
    unread = f(x)

    f(x)

Names of a function's own scope are looked up in the function, others in the whole script. The removal goes on to a
fixpoint, so a helper of an unused helper is removed with it. All of it goes in one question. If that changes the
mismatch, the next question leaves assignments whose value may have a side effect, and then the rest is halved. Of an
assignment, also by ``+=``, that only reads what it assigns itself, the calls stay.

Names used anywhere under the same spelling stay. So do methods that others call by protocol, such as ``forward``, and
functions that a decorator of the script may have put into a registry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.defects import class_members
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.scope import assigned_targets, imported_names, in_own_scope, variables_in
from torchbisect.minimizer.syntax.tree import Comprehension, Function, children, walk
from torchbisect.minimizer.unused import UsedNames, may_have_side_effects, never_read, unused_edits, without_unused


def run(search: ReductionSearch) -> None:
    """Attempt the fixpoint, then one that keeps attributes or side effects, then each round in halves."""
    if not search.attempt(without_unused(search.tree)):
        if not search.attempt(without_unused(search.tree, since=search.tree)):
            search.attempt(without_unused(search.tree, harmless=True, since=search.tree))
        while search.delta_debug(unused_edits(search.tree)):
            pass
    search.delta_debug(_unread_assignments(search.tree))
    search.delta_debug(list(_calls_alone(search.tree)))


def _unread_assignments(tree: ast.Module) -> list[Edit]:
    """Return edits from ``y = f(x)`` or ``y += f(x)`` to ``f(x)``, where ``y`` is not read: the call may be needed."""
    used_by = UsedNames(tree)
    found = []
    for node in walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = assigned_targets(node)
            names = all(isinstance(item, (ast.Name, ast.Tuple)) for item in targets)
            if names and all(never_read(item, used_by(node), {""}) for item in targets):
                found.append(Edit.of(node, ast.Expr(node.value)))
    return found


def _calls_alone(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from ``y = y * f() * g()`` to ``f()`` and ``g()``, where only such assignments read ``y``."""
    imported, members = imported_names(tree), class_members(tree)
    for scope in (node for node in walk(tree) if isinstance(node, (ast.Module, *Function))):
        assigned: dict[str, list[ast.Assign]] = {}
        for node in (item for part in scope.body for item in in_own_scope(part)):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                assigned.setdefault(node.targets[0].id, []).append(node)
        for name, nodes in assigned.items():
            own = {id(part) for node in nodes for part in walk(node.value)}
            reads = [item for item in walk(scope) if isinstance(item, ast.Name) and item.id == name]
            if any(isinstance(item.ctx, ast.Load) and id(item) not in own for item in reads):
                continue
            for node in nodes:
                calls = [call for call in _outermost_calls(node.value) if name not in variables_in(call)]
                calls = [call for call in calls if may_have_side_effects(call, imported, members)]
                if calls and any(name in variables_in(part) for part in children(node.value)):
                    yield Edit.of(node, [ast.Expr(call) for call in calls])


def _outermost_calls(node: ast.AST) -> Iterator[ast.Call]:
    if isinstance(node, ast.Call):
        yield node
    elif not isinstance(node, (ast.Lambda, *Comprehension)):
        for child in children(node):
            yield from _outermost_calls(child)
