"""Everything of torch named from one ``import torch``.

``F.relu`` and ``nn.Linear`` save typing in a program; in a few lines they cost an import each. ``F.relu`` becomes
``torch.relu`` where there is one, else ``torch.nn.functional.relu``. Leaves imports of other packages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply
from torchbisect.minimizer.syntax.tree import walk

# What torch itself documents of torch.nn.functional; of the others it has an undocumented half under the same name.
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
    """One question with the short names, and one with the long ones if that fails."""
    for tree in _candidates(search.tree):
        if search.attempt(tree):
            return


def unaliased(tree: ast.Module) -> ast.Module:
    """``import torch as th`` as ``import torch``: what a trace says is written with torch's own name."""
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
    """Torch under its own name, before anything else."""
    search.attempt_rewrite(unaliased(search.tree))


def _candidates(tree: ast.Module) -> Iterator[ast.Module]:
    full, removals = _imported(tree)
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


def _imported(tree: ast.Module) -> tuple[dict[str, str], list[Edit]]:
    """Names that stand for parts of torch, with their full names; and what takes their imports away."""
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
