"""The part of a test's file that the test reaches by name: two tests of one file need not test the same."""

from __future__ import annotations

import ast

from torchbisect.core.python_text import parse_or_none

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def reached_source(source: str, node: str) -> str:
    """Return the definitions of a file that one of its tests uses, as text; the whole text if they aren't found.

    Args:
        source: the text of the file.
        node: the test's name in it, as pytest writes it: ``TestHead::test_window[3]``.
    """
    tree = parse_or_none(source)
    if tree is None:
        return source
    defined: dict[str, ast.stmt] = {one.name: one for one in tree.body if isinstance(one, _Definition)}
    for one in tree.body:
        for target in one.targets if isinstance(one, ast.Assign) else ():
            if isinstance(target, ast.Name):
                defined[target.id] = one
    outer, _, inner = node.partition("[")[0].partition("::")
    if outer not in defined:
        return source
    found: dict[str, ast.AST] = {}
    pending: list[tuple[str, ast.AST]] = [(outer, _method(defined[outer], inner))]
    while pending:
        name, part = pending.pop()
        if name in found:
            continue
        found[name] = part
        used = {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
        used |= {one.arg for one in ast.walk(part) if isinstance(one, ast.arg)}  # fixtures
        pending += [(other, defined[other]) for other in sorted(used & defined.keys())]
    return "\n".join(ast.unparse(part) for part in found.values())


def _method(definition: ast.stmt, inner: str) -> ast.AST:
    """Return the method of a class that is the test; the definition itself if there is none of this name."""
    if isinstance(definition, ast.ClassDef):
        name = inner.rpartition("::")[2] or inner
        for part in definition.body:
            if isinstance(part, ast.FunctionDef) and part.name == name:
                return part
    return definition
