"""The script's own statement at which a run stopped: a failed assertion, a ``raise`` or an exit.

A failed assertion has no frame of torch that could identify it, and in a shrunk script its line and its names are
others. Its subjects stay: ``assert matrix.requires_grad`` and ``assert y.requires_grad`` are about the same thing,
``assert out.shape == (2, 2)`` is about another.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from torchbisect.core.python_text import parse_or_none

# How far a name in an assertion is followed back through the assignments before it.
_MAX_ASSIGNMENT_DEPTH = 4


@dataclass(frozen=True)
class FailingStatement:
    """A statement of the script that ended a run, and what it is about.

    Attributes:
        kind: ``assert``, ``raise`` or ``exit``.
        subjects: attributes, functions and methods in its condition (``requires_grad``, ``equal``, ``shape``), the
            script's own names left out; sorted.
        message: the assertion's own message, if that is a plain text.
        text: the statement itself on one line.
    """

    kind: str
    subjects: tuple[str, ...]
    message: str = ""
    text: str = ""


_parsed = lru_cache(maxsize=256)(parse_or_none)


@lru_cache(maxsize=256)
def bound_names(source: str) -> frozenset[str]:
    """Return every name that the script itself binds; none if it can't be parsed.

    Left out are those of imported modules, and of special methods, which messages name for other reasons.
    """
    tree = _parsed(source)
    if tree is None:
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
    names -= {"self", "forward", "backward", "requires_grad", "grad"}
    return frozenset(name for name in names if not (name.startswith("__") and name.endswith("__")))


def statement_at(source: str, line: int) -> FailingStatement | None:
    """Return the statement on this line, counted from 1; ``None`` if it is no assertion, ``raise`` or exit.

    A call of a function whose name begins with ``assert`` is an assertion about its arguments. The condition of a
    ``raise`` and of a ``sys.exit`` is that of the innermost ``if`` or ``while`` around it.
    """
    tree = _parsed(source)
    if tree is None:
        return None
    path = _path_to(tree, line)
    if not path:
        return None
    statement = path[-1]
    if isinstance(statement, ast.Assert):
        return FailingStatement(
            "assert", _subjects(statement.test, tree, path, line), _message(statement), _text(statement)
        )
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and _called_name(call).startswith("assert"):
        arguments = ast.Tuple([*call.args, *(keyword.value for keyword in call.keywords)])
        return FailingStatement("assert", _subjects(arguments, tree, path, line), text=_text(statement))
    if isinstance(statement, ast.Raise):
        kind = "raise"
    elif isinstance(call, ast.Call) and _called_name(call) in ("exit", "_exit", "quit"):
        kind = "exit"
    else:
        return None
    tests = [node.test for node in path if isinstance(node, (ast.If, ast.While))]
    return FailingStatement(kind, _subjects(tests[-1], tree, path, line) if tests else (), text=_text(statement))


def statement_in_text(statement: str) -> FailingStatement | None:
    """Return the assertion that a message of torch quotes, or ``None`` if the text is none."""
    tree = _parsed(statement.strip())
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Assert):
        return None
    words = tuple(sorted(_words(tree.body[0].test, frozenset())))
    return FailingStatement("assert", words, _message(tree.body[0]), _text(tree.body[0]))


def assertions_with_message(source: str, message: str) -> tuple[FailingStatement, ...]:
    """Return the script's assertions with this message; with ``assertion error`` those that have none.

    Dynamo before 2.4 puts a traced assertion into the graph, where it fails as a ``RuntimeError`` that has the
    assertion's message and no frame of the script.
    """
    tree = _parsed(source)
    if tree is None:
        return ()
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    wanted = "" if message == "assertion error" else message
    lines = [node.lineno for node in found if _message(node) == wanted and (wanted or node.msg is None)]
    statements = (statement_at(source, line) for line in lines)
    return tuple(statement for statement in statements if statement is not None)


def _text(statement: ast.stmt) -> str:
    return ast.unparse(statement)


def _message(statement: ast.Assert) -> str:
    message = statement.msg
    return message.value if isinstance(message, ast.Constant) and isinstance(message.value, str) else ""


def _path_to(tree: ast.Module, line: int) -> list[ast.stmt]:
    """Return the statements that contain the line, outermost first."""
    path: list[ast.stmt] = []
    body: list[ast.stmt] = list(tree.body)
    while body:
        inside = [node for node in body if node.lineno <= line <= (node.end_lineno or node.lineno)]
        if not inside:
            break
        path.append(inside[-1])
        body = [child for child in ast.walk(inside[-1]) if isinstance(child, ast.stmt) and _is_child(child, inside[-1])]
    return path


def _is_child(child: ast.stmt, parent: ast.stmt) -> bool:
    bodies = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
    bodies += [handler.body for handler in getattr(parent, "handlers", [])]
    bodies += [case.body for case in getattr(parent, "cases", [])]
    return any(child in body for body in bodies)


def _called_name(call: ast.Call) -> str:
    """Return the last name of the function that is called; empty if it has none."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _subjects(test: ast.expr, tree: ast.Module, path: list[ast.stmt], line: int) -> tuple[str, ...]:
    """Return the words of a condition; its names are followed back to their last assignment before this line."""
    scopes = [node for node in path if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    assigned = _assignments(scopes[-1] if scopes else tree, line)
    own = _own_functions(tree)
    words = _words(test, own)
    pending, seen = _names(test), set[str]()
    for _ in range(_MAX_ASSIGNMENT_DEPTH):
        values = [assigned[name] for name in pending - seen if name in assigned]
        seen |= pending
        # A test that says by itself what it is about (x.requires_grad) is not clearer for how x was made.
        if words or not values:
            break
        for value in values:
            words |= _words(value, own)
        pending = set().union(*(_names(value) for value in values))
    return tuple(sorted(words))


def _assignments(scope: ast.AST, line: int) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    assigns = [node for node in ast.walk(scope) if isinstance(node, ast.Assign) and node.lineno <= line]
    for node in sorted(assigns, key=lambda node: node.lineno):
        for target in node.targets:
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    found[name.id] = node.value
    return found


def _own_functions(tree: ast.Module) -> frozenset[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def _names(node: ast.expr) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _words(node: ast.expr, own: frozenset[str]) -> set[str]:
    words: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            words.add(part.attr)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            words.add(part.func.id)
    return words - own - _UNSPECIFIC


# Words for how a value is read, not for which: they come and go while a script is shrunk.
_UNSPECIFIC_WORDS = "torch all any bool int float str list tuple item tolist detach clone cpu self abs print len"
_UNSPECIFIC = frozenset(_UNSPECIFIC_WORDS.split())
