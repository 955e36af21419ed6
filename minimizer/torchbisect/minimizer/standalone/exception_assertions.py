"""Scripts that pass with the exception that eager mode raises, and fail without it or with another ending."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchbisect.core.python_text import parse_expression
from torchbisect.core.verdict import MismatchKind
from torchbisect.minimizer.standalone.value_assertions import ObservedMismatch, statement
from torchbisect.minimizer.syntax.edits import Edit, apply
from torchbisect.minimizer.syntax.tree import walk

_RAISED = re.compile(r"raises ((?:torch\.[\w.]+)|\w+)")


def with_required_exceptions(tree: ast.Module) -> Iterator[ast.Module]:
    """Yield scripts that fail if nothing is raised: where the script catches it, then at its last statement."""
    missing = "raise AssertionError('compiled raises nothing')"
    for attempt in _attempts(tree):
        *before, last = attempt.body
        if isinstance(last, ast.Return) and last.value is not None:
            # A return would leave before what comes after the attempt.
            last = ast.Expr(last.value)
        longer = _attempt([*before, last], attempt.handlers, [*attempt.orelse, statement(missing)], attempt.finalbody)
        yield apply(tree, [Edit.of(attempt, longer)])
    yield _with_last_attempted(tree, [_handler("Exception")], [statement(missing)])


def with_expected_exceptions(tree: ast.Module, mismatch: ObservedMismatch) -> Iterator[ast.Module]:
    """Yield scripts that catch nothing but the exception of eager mode, so that every other ending is a failure.

    Compiled code may raise a subclass of that exception, so the class is also compared.
    """
    raised = _RAISED.match(mismatch.eager)
    if raised is None:
        if mismatch.kind is MismatchKind.RAISES:
            for attempt in _attempts(tree):
                yield apply(tree, [Edit.of(attempt, [*attempt.body, *attempt.orelse, *attempt.finalbody])])
        return
    name = raised.group(1)
    exact = _handler("Exception", f"assert type(error).__name__ == {name.rpartition('.')[2]!r}", bind="error")
    for handler in (_handler(name), exact):
        for attempt in _attempts(tree):
            changed = _attempt(attempt.body, [handler], attempt.orelse, attempt.finalbody)
            yield apply(tree, [Edit.of(attempt, changed)])
        yield _with_last_attempted(tree, [handler], [])


def _attempts(tree: ast.Module) -> list[ast.Try]:
    """Return the ``try`` statements that catch something, the last first."""
    return [node for node in reversed(walk(tree)) if isinstance(node, ast.Try) and node.handlers]


def _with_last_attempted(tree: ast.Module, handlers: list[ast.ExceptHandler], orelse: list[ast.stmt]) -> ast.Module:
    """Return the script with its last statement in a ``try`` statement."""
    *before, last = tree.body
    return ast.Module(body=[*before, _attempt([last], handlers, orelse, [])], type_ignores=[])


def _attempt(
    body: list[ast.stmt], handlers: list[ast.ExceptHandler], orelse: list[ast.stmt], finalbody: list[ast.stmt]
) -> ast.Try:
    return ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody)


def _handler(name: str, text: str = "pass", *, bind: str | None = None) -> ast.ExceptHandler:
    kind = parse_expression(name)
    return ast.ExceptHandler(type=kind, name=bind, body=[statement(text)])
