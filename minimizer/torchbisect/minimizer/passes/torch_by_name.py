"""Name torch by its own name.

Before and after::

    import torch as th                import torch
    y = th.relu(x)                    y = torch.relu(x)

It runs before the other passes, because a trace writes torch under its own name, and one name is enough.
"""

from __future__ import annotations

import ast

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply
from torchbisect.minimizer.syntax.tree import walk


def run(search: ReductionSearch) -> None:
    """Name torch ``torch``, even if that makes the script longer."""
    search.attempt_rewrite(without_torch_aliases(search.tree))


def without_torch_aliases(tree: ast.Module) -> ast.Module:
    """Return the tree with ``import torch`` in the place of ``import torch as th``."""
    other = {
        alias.asname: alias
        for node in walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "torch" and alias.asname not in (None, "torch")
    }
    edits = [Edit.of(alias, ast.alias(name="torch")) for alias in other.values()]
    edits += [
        Edit.of(node, ast.Name(id="torch", ctx=node.ctx))
        for node in walk(tree)
        if isinstance(node, ast.Name) and node.id in other
    ]
    return apply(tree, edits)
