"""Find the functions and the assignments in a script's source."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, NamedTuple, Optional, Tuple


class Scope(NamedTuple):
    """A function of the script: its qualified name, and the name of its class if it is a method."""

    name: str
    owner: Optional[str]


class Assignment(NamedTuple):
    """A statement that binds plain names or attributes of ``self``, with its first and last line."""

    start: int
    end: int
    targets: Tuple[str, ...]


def scopes_of(tree: ast.AST) -> Dict[Tuple[int, str], Scope]:
    """Return every function in a script, by the first line and the name of its code object."""
    found: Dict[Tuple[int, str], Scope] = {}

    def walk(node: ast.AST, prefix: str, owner: Optional[str]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                line = min([child.lineno] + [decorator.lineno for decorator in child.decorator_list])
                found[line, child.name] = Scope(prefix + child.name, owner)
                walk(child, prefix + child.name + ".<locals>.", None)
            elif isinstance(child, ast.Lambda):
                found.setdefault((child.lineno, "<lambda>"), Scope(prefix + "<lambda>", None))
                walk(child, prefix + "<lambda>.<locals>.", None)
            elif isinstance(child, ast.ClassDef):
                walk(child, prefix + child.name + ".", child.name)
            else:
                walk(child, prefix, owner)

    walk(tree, "", None)
    return found


def assignments_of(tree: ast.AST) -> Dict[int, Assignment]:
    """Return every assignment in a script, by each line that it covers."""
    found: Dict[int, Assignment] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            targets = [node.target]
        else:
            continue
        names = tuple(name for target in targets for name in _targets(target))
        if names:
            statement = Assignment(node.lineno, node.end_lineno or node.lineno, names)
            for line in range(statement.start, statement.end + 1):
                found[line] = statement
    return found


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        yield "self." + target.attr
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _targets(item)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value)
