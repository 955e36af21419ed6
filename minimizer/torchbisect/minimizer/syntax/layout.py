"""The final text: imports on top, blank lines where people put them, long lines broken."""

from __future__ import annotations

import ast

WIDTH = 100


def laid_out(tree: ast.Module) -> str:
    """The tree's text with a blank line after the imports and round definitions; it parses back to the same tree."""
    parts: list[str] = []
    previous: ast.stmt | None = None
    for statement in tree.body:
        text = _definition(statement) if isinstance(statement, ast.ClassDef) else _broken(ast.unparse(statement))
        if previous is not None and _apart(previous, statement):
            parts.append("")
        parts.append(text)
        previous = statement
    whole = "\n".join(parts) + "\n"
    try:
        same = ast.dump(ast.parse(whole)) == ast.dump(ast.parse(ast.unparse(tree)))
    except (SyntaxError, ValueError):
        same = False
    return whole if same else ast.unparse(tree) + "\n"


def _apart(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether a blank line goes between two top-level statements."""
    if isinstance(other, (ast.Import, ast.ImportFrom)):
        return False
    if isinstance(one, (ast.Import, ast.ImportFrom)):
        return True
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(one, definitions) or isinstance(other, definitions)


def _definition(node: ast.ClassDef) -> str:
    """A class as ``ast`` writes it: with blank lines between its methods, but none before the first."""
    lines = ast.unparse(node).splitlines()
    kept: list[str] = []
    for line in lines:
        if not line and kept and kept[-1].startswith("class "):
            continue
        kept.append(line)
    return "\n".join(kept)


def _broken(text: str) -> str:
    """A long call over several lines: the outermost argument list, one argument a line."""
    if all(len(line) <= WIDTH for line in text.splitlines()) or "\n" in text:
        return text
    node = ast.parse(text).body[0]
    value = getattr(node, "value", None)
    if not isinstance(value, ast.Call) or not (value.args or value.keywords):
        return text
    head = text[: len(text) - len(ast.unparse(value))] + ast.unparse(value.func)
    inner = [ast.unparse(item) for item in value.args] + [ast.unparse(item) for item in value.keywords]
    return head + "(\n" + "".join(f"    {item},\n" for item in inner) + ")"
