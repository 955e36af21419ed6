"""Format the final script for readers: blank lines around definitions, and long calls over several lines."""

from __future__ import annotations

import ast

WIDTH = 100


def format_script(tree: ast.Module) -> str:
    """Return the text of a tree with blank lines after the imports and around definitions.

    The text parses to the same tree.
    """
    parts: list[str] = []
    previous: ast.stmt | None = None
    for statement in tree.body:
        text = (
            _class_text(statement) if isinstance(statement, ast.ClassDef) else _break_long_call(ast.unparse(statement))
        )
        if previous is not None and _needs_blank_line(previous, statement):
            parts.append("")
        parts.append(text)
        previous = statement
    whole = "\n".join(parts) + "\n"
    try:
        same = ast.dump(ast.parse(whole)) == ast.dump(ast.parse(ast.unparse(tree)))
    except (SyntaxError, ValueError):
        same = False
    return whole if same else ast.unparse(tree) + "\n"


def _needs_blank_line(one: ast.stmt, other: ast.stmt) -> bool:
    """Tell whether a blank line goes between two top-level statements."""
    if isinstance(other, (ast.Import, ast.ImportFrom)):
        return False
    if isinstance(one, (ast.Import, ast.ImportFrom)):
        return True
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(one, definitions) or isinstance(other, definitions)


def _class_text(node: ast.ClassDef) -> str:
    """Return a class as ``ast`` writes it, but without a blank line before its first method."""
    lines = ast.unparse(node).splitlines()
    kept: list[str] = []
    for line in lines:
        if not line and kept and kept[-1].startswith("class "):
            continue
        kept.append(line)
    return "\n".join(kept)


def _break_long_call(text: str) -> str:
    """Break a statement that is one long call: one argument of the outermost call a line."""
    if all(len(line) <= WIDTH for line in text.splitlines()) or "\n" in text:
        return text
    node = ast.parse(text).body[0]
    value = getattr(node, "value", None)
    if not isinstance(value, ast.Call) or not (value.args or value.keywords):
        return text
    head = text[: len(text) - len(ast.unparse(value))] + ast.unparse(value.func)
    inner = [ast.unparse(item) for item in value.args] + [ast.unparse(item) for item in value.keywords]
    return head + "(\n" + "".join(f"    {item},\n" for item in inner) + ")"
