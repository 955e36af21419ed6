"""Name everything of torch from one ``import torch``.

Before and after::

    import torch.nn.functional as F
    y = F.relu(x)

    import torch
    y = torch.relu(x)

Aliases save typing in a program; in a script of a few lines each costs an import. Functions that torch documents under
both names get the short one. ``torch.nn.functional`` also has an undocumented half of ``torch`` under the same names,
so equal names alone prove nothing: the documented ones are listed here. Imports of other packages stay.

``torch_by_name`` replaces ``import torch as th`` before any other pass runs, because a trace writes torch under its own
name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply
from torchbisect.minimizer.syntax.tree import walk

# Functions of torch.nn.functional that torch documents under its own name too.
_ALSO_IN_TORCH = frozenset(
    (
        "relu",
        "relu_",
        "sigmoid",
        "tanh",
        "softmax",
        "log_softmax",
        "dropout",
        "celu",
        "celu_",
        "selu",
        "selu_",
        "conv1d",
    )
    + ("conv2d", "conv3d", "conv_transpose2d", "cosine_similarity", "pixel_shuffle", "prelu", "threshold", "pdist")
)


def run(search: ReductionSearch) -> None:
    """Attempt the short names, then the long ones if that fails."""
    for tree in _renamed_imports(search.tree):
        if search.attempt(tree):
            return


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


def torch_by_name(search: ReductionSearch) -> None:
    """Name torch ``torch``, even if that makes the script longer."""
    search.attempt_rewrite(without_torch_aliases(search.tree))


def _renamed_imports(tree: ast.Module) -> Iterator[ast.Module]:
    """Return the trees without the imports: one with short names where torch has them, one with full names."""
    full, removals = _torch_imports(tree)
    if not full:
        return
    names = [node for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    long = [Edit.of(node, _dotted(full[node.id])) for node in names if node.id in full]
    functional = [
        node
        for node in walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and full.get(node.value.id) == "torch.nn.functional"
        and node.attr in _ALSO_IN_TORCH
    ]
    short = [Edit.of(node, _dotted(f"torch.{node.attr}")) for node in functional]
    for edits in ([*long, *short], long) if short else (long,):
        bare = apply(tree, [*removals, *edits])
        if not any(
            isinstance(node, ast.Import) and "torch" in {item.name for item in node.names} for node in bare.body
        ):
            bare.body.insert(0, ast.Import(names=[ast.alias(name="torch")], lineno=0))
        yield bare


def _torch_imports(tree: ast.Module) -> tuple[dict[str, str], list[Edit]]:
    """Return the full names of the names that stand for parts of torch, and edits that remove their imports."""
    full: dict[str, str] = {}
    removals: list[Edit] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("torch."):
                    full[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                    removals.append(Edit.remove(alias))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch" and not node.level:
            for alias in node.names:
                full[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                removals.append(Edit.remove(alias))
    return full, removals


def _dotted(name: str) -> ast.expr:
    first, *rest = name.split(".")
    node: ast.expr = ast.Name(id=first, ctx=ast.Load())
    for part in rest:
        node = ast.Attribute(value=node, attr=part, ctx=ast.Load())
    return node
