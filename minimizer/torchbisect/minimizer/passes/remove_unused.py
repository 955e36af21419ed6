"""Remove imports, definitions, assignments, methods, fields and annotations that nothing uses.

Before and after::

    import os
    def helper(x: int):
        return os.sep
    unread = f(x)

    f(x)

Names of a function's own scope are looked up in the function, others in the whole script. The removal goes on to a
fixpoint, so a helper of an unused helper is removed with it. All of it goes in one question. If that changes the
mismatch, the next question leaves assignments whose value may have a side effect, and then the rest is halved.

Names used anywhere under the same spelling stay. So do methods that others call by protocol, such as ``forward``, and
functions that a decorator of the script may have put into a registry.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.tree import walk
from torchbisect.minimizer.unused import UsedNames, never_read, unused_edits, without_unused


def run(search: ReductionSearch) -> None:
    """Attempt the fixpoint, then the fixpoint without side effects, then each round in halves."""
    if not search.attempt(without_unused(search.tree)):
        search.attempt(without_unused(search.tree, harmless=True))
        while search.delta_debug(unused_edits(search.tree)):
            pass
    search.delta_debug(_unread_assignments(search.tree))


def _unread_assignments(tree: ast.Module) -> list[Edit]:
    """Return edits from ``unread = f(x)`` to ``f(x)``: the call may be needed, its name is not."""
    used_by = UsedNames(tree)
    return [
        Edit.of(node, ast.Expr(node.value))
        for node in walk(tree)
        if isinstance(node, ast.Assign) and all(never_read(item, used_by(node), {""}) for item in node.targets)
        if all(isinstance(item, (ast.Name, ast.Tuple)) for item in node.targets)
    ]
