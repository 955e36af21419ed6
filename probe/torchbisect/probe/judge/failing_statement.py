"""What the user's own script says at the line where a run stopped: the assertion that failed, the test that decided.

An assertion in the script carries no frame of torch to know it by, and in a shrunk script neither its line nor its
names are the same. What stays is what it asks about: ``assert matrix.requires_grad`` and ``assert y.requires_grad``
are one question, ``assert out.shape == (2, 2)`` is another.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

# How far a name in an assertion is followed back through the assignments before it.
_DEPTH = 4


@dataclass(frozen=True)
class Statement:
    """What a failing statement of the script asks about.

    Attributes:
        kind: ``assert``, ``raise`` or ``exit``.
        asks: attributes, functions and methods in what decides it (``requires_grad``, ``equal``, ``shape``), the
            script's own names left out; sorted.
        says: the message that the statement itself gives, where that is a plain text.
        text: the statement itself on one line.
    """

    kind: str
    asks: tuple[str, ...]
    says: str = ""
    text: str = ""


@lru_cache(maxsize=256)
def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=256)
def bound_names(source: str) -> frozenset[str]:
    """Every name that the script itself binds: variables, parameters, functions, classes, attributes it sets.

    Names of modules that it imports are left out; a script that can't be parsed binds none.
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
    return frozenset(names - {"self", "forward", "backward", "requires_grad", "grad"})


def statement_at(source: str, line: int) -> Statement | None:
    """What the statement on this line of the script asks about; ``None`` if it is no assertion, raise or exit.

    For a ``raise`` and a ``sys.exit`` it is the test of the innermost ``if`` or ``while`` that they stand in.

    Args:
        source: the script.
        line: from 1, as a traceback has it; any line of the statement.
    """
    tree = _parsed(source)
    if tree is None:
        return None
    path = _path_to(tree, line)
    if not path:
        return None
    statement = path[-1]
    if isinstance(statement, ast.Assert):
        return Statement("assert", _asks(statement.test, tree, path, line), _says(statement), _text(statement))
    if isinstance(statement, ast.Raise):
        kind = "raise"
    elif isinstance(statement, ast.Expr) and _is_exit(statement.value):
        kind = "exit"
    else:
        return None
    tests = [node.test for node in path if isinstance(node, (ast.If, ast.While))]
    return Statement(kind, _asks(tests[-1], tree, path, line) if tests else (), text=_text(statement))


def statement_in_text(statement: str) -> Statement | None:
    """What one statement, quoted by itself in a message of torch's, asks about; only assertions are known so."""
    tree = _parsed(statement.strip())
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Assert):
        return None
    words = tuple(sorted(_words(tree.body[0].test, frozenset())))
    return Statement("assert", words, _says(tree.body[0]), _text(tree.body[0]))


def assertions_that_say(source: str, message: str) -> tuple[Statement, ...]:
    """The script's assertions with this message; with ``assertion error`` those that have none.

    Dynamo before 2.4 puts a traced assertion into the graph, where it fails as a ``RuntimeError`` that has the
    assertion's message and no frame of the script.
    """
    tree = _parsed(source)
    if tree is None:
        return ()
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    wanted = "" if message == "assertion error" else message
    lines = [node.lineno for node in found if _says(node) == wanted and (wanted or node.msg is None)]
    questions = (statement_at(source, line) for line in lines)
    return tuple(question for question in questions if question is not None)


def _text(statement: ast.stmt) -> str:
    return ast.unparse(statement)


def _says(statement: ast.Assert) -> str:
    message = statement.msg
    return message.value if isinstance(message, ast.Constant) and isinstance(message.value, str) else ""


def _path_to(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The statements that contain the line, outermost first; the last one is the innermost."""
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


def _is_exit(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("exit", "_exit", "quit")


def _asks(test: ast.expr, tree: ast.Module, path: list[ast.stmt], line: int) -> tuple[str, ...]:
    """The words of a test, names in it followed back to what was assigned to them last before this line."""
    scopes = [node for node in path if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    assigned = _assignments(scopes[-1] if scopes else tree, line)
    own = _own_functions(tree)
    words = _words(test, own)
    pending, seen = _names(test), set[str]()
    for _ in range(_DEPTH):
        values = [assigned[name] for name in pending - seen if name in assigned]
        seen |= pending
        # A test that says by itself what it asks about (x.requires_grad) is not clearer for how x was made.
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
    return words - own - _PLAIN


# Words that say how something is looked at, not what: they come and go while a script is shrunk.
_PLAIN_WORDS = "torch all any bool int float str list tuple item tolist detach clone cpu self abs print len"
_PLAIN = frozenset(_PLAIN_WORDS.split())
