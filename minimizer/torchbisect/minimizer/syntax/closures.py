"""Move a nested function to module level: the names that it reads from its surroundings become plain assignments."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, field

from torchbisect.core.python_text import parse_python
from torchbisect.core.trace import Trace
from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.scope import bound_names, local_names
from torchbisect.minimizer.syntax.tree import Function, expression, walk

_Reader = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.Expr


def extract_function(
    tree: ast.Module, inner: ast.FunctionDef, qualified: str, trace: Trace, *, with_calls: bool = False
) -> list[ast.stmt]:
    """Return the function without its decorators, after the statements that bind the names it reads.

    The value of a name comes from the trace, as an assigned value or as an argument of an enclosing function. Where the
    trace has none, the assignment in the script is copied. A function or class beside the function is copied too, with
    the names that it reads in turn. A name about which nothing is known stays unbound. ``with_calls`` copies also the
    statements before the function that use what it reads, such as a hook on its model.
    """
    extraction = _Extraction(tree, _traced_values(qualified, trace), done={inner.name})
    extraction.bind_names_of(inner)
    if with_calls:
        extraction.copy_calls_before(inner)
    bare = copied(inner)
    bare.decorator_list = []
    return [*extraction.statements, bare]


def wrap_in_factory(statements: list[ast.stmt], name: str, factory_name: str) -> ast.FunctionDef:
    """Return a function that runs the statements and returns the value of ``name``, so that a closure stays one."""
    factory = parse_python(f"def {factory_name}():\n    return {name}").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body[:0] = statements
    return factory


@dataclass
class _Extraction:
    """The statements collected so far for an extracted function, and the names (``done``) that they bind."""

    tree: ast.Module
    traced: dict[str, str]
    done: set[str]
    statements: list[ast.stmt] = field(default_factory=list)

    def bind_names_of(self, inner: _Reader) -> None:
        """Add statements that bind the free names of a function, class or statement."""
        enclosing = _enclosing_functions(self.tree, inner)
        for name in sorted(_free_names(inner) - self.done):
            siblings = [node for scope in enclosing for node in scope.body]
            defined = next((node for node in siblings if _defines(node, name)), None)
            assigned = next((node for node in siblings if _assigns(node, name)), None)
            if isinstance(defined, (ast.FunctionDef, ast.ClassDef)):
                self.done.add(name)
                self.bind_names_of(defined)
                sibling = copied(defined)
                sibling.decorator_list = []
                self.statements.append(sibling)
            elif name in self.traced and any(name in local_names(scope) for scope in enclosing):
                self.done.add(name)
                target = ast.Name(id=name, ctx=ast.Store())
                self.statements.append(ast.Assign(targets=[target], value=expression(self.traced[name]), lineno=0))
            elif isinstance(assigned, ast.Assign):
                self.done.add(name)
                self.bind_names_of(assigned)
                self.statements.append(copied(assigned))

    def copy_calls_before(self, inner: ast.FunctionDef) -> None:
        """Add the statements before a function that are given one of its free names."""
        read = _free_names(inner) & self.done
        for scope in reversed(_enclosing_functions(self.tree, inner)):
            before = itertools.takewhile(lambda node: not any(item is inner for item in walk(node)), scope.body)
            for node in before:
                if not isinstance(node, (ast.Assign, ast.Expr)) or bound_names([node]) & self.done:
                    continue
                if _free_names(node) & read:
                    self.bind_names_of(node)
                    self.statements.append(ast.Expr(copied(node.value)))


def _traced_values(qualified: str, trace: Trace) -> dict[str, str]:
    """Return expressions for the values of names in the enclosing functions; the innermost function's win."""
    found: dict[str, str] = {}
    outer = qualified.split(".<locals>")
    for depth in range(1, len(outer)):
        scope = ".<locals>".join(outer[:depth])
        for call in trace.calls:
            if call.function == scope:
                found.update({item.name: item.text for item in call.arguments if item.text is not None})
        found.update({value.name: value.text for value in trace.values if value.function == scope})
    return found


def _enclosing_functions(tree: ast.Module, inner: ast.AST) -> list[ast.FunctionDef]:
    """Return the functions that contain a node, the innermost first."""
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


def _free_names(node: _Reader) -> set[str]:
    """Return the names that a node reads or declares ``nonlocal``, and does not bind itself."""
    own = {item.arg for item in walk(node) if isinstance(item, ast.arg)}
    if not isinstance(node, (ast.Assign, ast.Expr)):
        own |= bound_names(node.body)
        own |= {name for item in walk(node) if isinstance(item, ast.FunctionDef) for name in bound_names(item.body)}
    reads = {item.id for item in walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    shared = {name for item in walk(node) if isinstance(item, ast.Nonlocal) for name in item.names}
    return (reads - own) | shared
