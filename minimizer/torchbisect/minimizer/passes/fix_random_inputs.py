"""Give the script the same numbers in every run.

Before and after, where a number below zero is needed::

    f(torch.randn(2))                 f(-torch.ones(2))

The probe seeds every run, and plain Python does not. So a script that needs particular numbers, and draws them, fails
there by luck. It also answers by luck here: each change of a size or of the order changes the numbers. So the numbers
become plain ones early: all tensors at once, then each alone. Where no plain number will do, the script gets a seed.

A script that seeds itself stays, and no pass deletes its seed while it draws numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply
from torchbisect.minimizer.syntax.random_numbers import is_seeded, random_constructors
from torchbisect.minimizer.syntax.tree import expression

MOST_ALONE = 3
"""The most tensors that are changed one by one."""
SEEDS = (0, 1, 2)
"""The seeds that are tried."""


def run(search: ReductionSearch) -> None:
    """Replace the numbers that the script draws, and seed it if some stay."""
    if is_seeded(search.tree):
        return
    count = len(random_constructors(search.tree))
    for _ in range(count if count <= MOST_ALONE else 1):
        if not any(search.attempt_rewrite(tree) for tree in _with_plain_numbers(search.tree)):
            break
    if random_constructors(search.tree):
        any(search.attempt_rewrite(_seeded(search.tree, seed)) for seed in SEEDS)


def _with_plain_numbers(tree: ast.Module) -> Iterator[ast.Module]:
    """Return the trees with plain numbers in the place of all random tensors, then of each alone."""
    found = random_constructors(tree)
    groups = [found, *([call] for call in found)] if 1 < len(found) <= MOST_ALONE else [found]
    for calls in filter(None, groups):
        for form in (_ones, _minus_ones, _from_minus_one_to_one):
            edits = [Edit.of(call, value) for call in calls if (value := form(call)) is not None]
            if edits:
                yield apply(tree, edits)


def _ones(call: ast.Call) -> ast.expr:
    return ast.Call(func=expression("torch.ones"), args=call.args, keywords=call.keywords)


def _minus_ones(call: ast.Call) -> ast.expr | None:
    if not any(keyword.arg == "requires_grad" for keyword in call.keywords):
        return ast.UnaryOp(op=ast.USub(), operand=_ones(call))
    # The negative of a leaf is none.
    size = call.args[0] if isinstance(call.args[0], (ast.Tuple, ast.List)) else ast.Tuple(call.args, ast.Load())
    return ast.Call(func=expression("torch.full"), args=[size, expression("-1.0")], keywords=call.keywords)


def _from_minus_one_to_one(call: ast.Call) -> ast.expr | None:
    if len(call.args) != 1 or not isinstance(call.args[0], ast.Constant):
        return None
    args = [expression("-1"), expression("1"), call.args[0]]
    return ast.Call(func=expression("torch.linspace"), args=args, keywords=call.keywords)


def _seeded(tree: ast.Module, seed: int) -> ast.Module:
    """Return the tree with a seed behind its first imports."""
    place = next((number for number, item in enumerate(tree.body) if not _is_import(item)), len(tree.body))
    statement = ast.Expr(expression(f"torch.manual_seed({seed})"))
    return apply(ast.Module(body=[*tree.body[:place], statement, *tree.body[place:]], type_ignores=[]), [])


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))
