"""Take away what nothing uses: imports, definitions, assignments, methods, fields, annotations.

Uses are looked up by name, of a function's own names in the function and of others over the whole script, to a
fixpoint, so that a helper of an unused helper goes with it. Everything goes in one question; where that changes the
mismatch, all but the assignments of what may have an effect; what is then left is halved. Leaves what is used
under the same name, methods that others call by protocol, and what a decorator of the script's own may have put into a
registry.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.tree import walk
from torchbisect.minimizer.unused import UsedNames, never_read, unused_edits, without_unused


def run(search: ReductionSearch) -> None:
    """One question for the fixpoint, one for that of what has no effect, else for each round by halves."""
    if not search.attempt(without_unused(search.tree)):
        search.attempt(without_unused(search.tree, harmless=True))
        while search.delta_debug(unused_edits(search.tree)):
            pass
    search.delta_debug(_values_alone(search.tree))


def _values_alone(tree: ast.Module) -> list[Edit]:
    """``unread = f(x)`` as ``f(x)``: what has an effect can't go, but nobody needs its name."""
    used_by = UsedNames(tree)
    return [
        Edit.of(node, ast.Expr(node.value))
        for node in walk(tree)
        if isinstance(node, ast.Assign) and all(never_read(item, used_by(node), {""}) for item in node.targets)
        if all(isinstance(item, (ast.Name, ast.Tuple)) for item in node.targets)
    ]
