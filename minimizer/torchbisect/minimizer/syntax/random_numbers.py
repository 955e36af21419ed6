"""The random numbers that a script draws, and the seed that it sets for them."""

from __future__ import annotations

import ast

from torchbisect.minimizer.syntax.torch_names import TENSOR_CONSTRUCTORS, TorchNames
from torchbisect.minimizer.syntax.tree import walk


def random_constructors(tree: ast.Module) -> list[ast.Call]:
    """Return the calls of torch that make a tensor of random numbers of floating point."""
    names = TorchNames.of(tree)
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and node.args]
    return [call for call in calls if (name := names.constructor(call.func)) and TENSOR_CONSTRUCTORS[name].float_only]


def is_seeded(tree: ast.Module) -> bool:
    """Tell whether a statement of the script itself sets the seed of torch's random numbers."""
    return any(map(sets_seed, tree.body))


def sets_seed(node: ast.stmt) -> bool:
    """Tell whether a statement is ``torch.manual_seed(0)``."""
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("torch.manual_seed(")
