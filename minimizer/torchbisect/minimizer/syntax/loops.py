"""The body of a loop as statements that run once."""

from __future__ import annotations

import ast
from collections.abc import Sequence

_JUMPS = (ast.Break, ast.Continue)


def body_once(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a loop's body without the ``break`` and ``continue`` of its own level.

    After ``if x: continue`` the rest of the body runs only if not ``x``, so it becomes the other branch.
    """
    found: list[ast.stmt] = []
    for place, statement in enumerate(body):
        if isinstance(statement, _JUMPS):
            continue
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], _JUMPS) and not statement.orelse:
            rest = body_once(body[place + 1 :])
            before = body_once(statement.body)
            if not before:
                inverse = ast.UnaryOp(op=ast.Not(), operand=statement.test)
                return [*found, ast.If(test=inverse, body=rest, orelse=[])] if rest else found
            return [*found, ast.copy_location(ast.If(test=statement.test, body=before, orelse=rest), statement)]
        found.append(statement)
    return found
