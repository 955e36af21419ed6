"""A function that is defined inside another one, taken out: what it read from round it becomes plain assignments."""

from __future__ import annotations

import ast
import itertools

from torchbisect.core.trace import Trace
from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.scope import bound_names, parameters
from torchbisect.minimizer.syntax.tree import Function, expression, walk


def extract_function(
    tree: ast.Module, inner: ast.FunctionDef, qualified: str, trace: Trace, *, touched: bool = False
) -> list[ast.stmt]:
    """The function without its decorators, after what binds the names that it reads from its enclosing functions.

    A name's value is what the trace saw it hold, or the argument it was in a call of the enclosing function, else its
    own assignment; a function or class beside it comes along, and so does what that one reads. Names that nothing is
    known of stay unbound.

    Args:
        tree: the script.
        inner: the function.
        qualified: its qualified name, ``make.<locals>.step``.
        trace: what an eager run of the script did.
        touched: also with the statements before it that do something with what it reads, such as hooks on its model.
    """
    found: list[ast.stmt] = []
    done: set[str] = {inner.name}
    _bind(tree, inner, qualified, trace, found, done)
    if touched:
        _touch(tree, inner, qualified, trace, found, done)
    bare = copied(inner)
    bare.decorator_list = []
    return [*found, bare]


def wrap_in_factory(statements: list[ast.stmt], name: str, factory_name: str) -> ast.FunctionDef:
    """A function that runs these statements and returns what they bind to a name: a closure stays one."""
    factory = ast.parse(f"def {factory_name}():\n    return {name}").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body[:0] = statements
    return factory


def _bind(
    tree: ast.Module,
    inner: ast.FunctionDef | ast.ClassDef | ast.Assign | ast.Expr,
    qualified: str,
    trace: Trace,
    found: list[ast.stmt],
    done: set[str],
) -> None:
    around = _around(tree, inner)
    known = dict(_known(qualified, trace))
    for name in sorted(_free(inner) - done):
        siblings = [node for scope in around for node in scope.body]
        defined = next((node for node in siblings if _defines(node, name)), None)
        assigned = next((node for node in siblings if _assigns(node, name)), None)
        if isinstance(defined, (ast.FunctionDef, ast.ClassDef)):
            done.add(name)
            _bind(tree, defined, qualified, trace, found, done)
            beside = copied(defined)
            beside.decorator_list = []
            found.append(beside)
        elif name in known and any(name in _bound(scope) for scope in around):
            done.add(name)
            target = ast.Name(id=name, ctx=ast.Store())
            found.append(ast.Assign(targets=[target], value=expression(known[name]), lineno=0))
        elif isinstance(assigned, ast.Assign):
            done.add(name)
            _bind(tree, assigned, qualified, trace, found, done)
            found.append(copied(assigned))


def _touch(
    tree: ast.Module, inner: ast.FunctionDef, qualified: str, trace: Trace, found: list[ast.stmt], done: set[str]
) -> None:
    """Add the calls that stand before a function and are given what it reads."""
    read = _free(inner) & done
    for scope in reversed(_around(tree, inner)):
        for node in itertools.takewhile(lambda node: not any(item is inner for item in walk(node)), scope.body):
            if isinstance(node, (ast.Assign, ast.Expr)) and _free(node) & read and not bound_names([node]) & done:
                _bind(tree, node, qualified, trace, found, done)
                found.append(ast.Expr(copied(node.value)))


def _known(qualified: str, trace: Trace) -> list[tuple[str, str]]:
    """Names of the enclosing functions with what rebuilds their values, the innermost function's last."""
    found: list[tuple[str, str]] = []
    outer = qualified.split(".<locals>")
    for depth in range(1, len(outer)):
        scope = ".<locals>".join(outer[:depth])
        for call in trace.calls:
            if call.function == scope:
                found += [(item.name, item.text) for item in call.arguments if item.text is not None]
        found += [(value.name, value.text) for value in trace.values if value.function == scope]
    return found


def _around(tree: ast.Module, inner: ast.AST) -> list[ast.FunctionDef]:
    """The functions that a function lies in, the innermost first."""
    holding = [
        node
        for node in walk(tree)
        if isinstance(node, ast.FunctionDef) and node is not inner and any(item is inner for item in walk(node))
    ]
    return holding[::-1]


def _defines(node: ast.stmt, name: str) -> bool:
    return isinstance(node, (*Function, ast.ClassDef)) and node.name == name


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and len(node.targets) == 1 and ast.unparse(node.targets[0]) == name


def _bound(function: ast.FunctionDef) -> set[str]:
    return {item.arg for item in parameters(function.args)} | bound_names(function.body)


def _free(node: ast.FunctionDef | ast.ClassDef | ast.Assign | ast.Expr) -> set[str]:
    """Names that it reads, or declares nonlocal, and doesn't bind itself."""
    own = {item.arg for item in walk(node) if isinstance(item, ast.arg)}
    if not isinstance(node, (ast.Assign, ast.Expr)):
        own |= bound_names(node.body)
        own |= {name for item in walk(node) if isinstance(item, ast.FunctionDef) for name in bound_names(item.body)}
    reads = {item.id for item in walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    shared = {name for item in walk(node) if isinstance(item, ast.Nonlocal) for name in item.names}
    return (reads - own) | shared
