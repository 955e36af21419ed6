"""Parse syntax trees, walk them in several orders, and write them as text that is formatted for readers.

Nodes keep the line numbers of the text they came from, so a line of a trace can still be looked up after many edits.
Nodes that a pass creates have no line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.core.python_text import parse_expression, parse_python

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Comprehension = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
WIDTH = 100


def product(left: ast.expr, right: ast.expr) -> ast.BinOp:
    """Return the expression ``left * right``."""
    return ast.BinOp(left=left, op=ast.Mult(), right=right)


def text_of(tree: ast.AST) -> str:
    """Return the text of a tree; equal trees have equal texts."""
    return ast.unparse(tree)


def expression(text: str) -> ast.expr:
    """Return the tree of an expression, without line numbers: it stands for no line of the user's text.

    Raises ``SyntaxError`` if the text is not an expression.
    """
    body = parse_expression(text)
    for node in walk(body):
        for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            if hasattr(node, name):
                delattr(node, name)
    return body


def expression_or_none(text: str) -> ast.expr | None:
    """Return the tree of an expression, or ``None`` for a text that this Python can't parse.

    The Python that wrote a traced value may be a newer one.
    """
    try:
        return expression(text)
    except SyntaxError:
        return None


def bodies(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield every list of statements with the node it belongs to, outer ones first."""
    for node in walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield node, block


def children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node, as ``ast.iter_child_nodes`` does, but faster: a reduction does little else."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all its descendants in breadth-first order, as ``ast.walk`` yields them."""
    found = [node]
    for item in found:
        found += children(item)
    return found


def preorder(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants in the order of the text."""
    yield node
    for child in children(node):
        yield from preorder(child)


def parents(tree: ast.AST) -> dict[int, ast.AST]:
    """Map the ``id`` of each node to its parent."""
    return {id(child): node for node in walk(tree) for child in children(node)}


def count_nodes(tree: ast.AST) -> int:
    """Return the number of nodes of a tree, the size by which results are compared."""
    return len(walk(tree))


def format_script(tree: ast.Module) -> str:
    """Return text that parses to the same tree, with blank lines after the imports and around definitions."""
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
        same = ast.dump(parse_python(whole)) == ast.dump(parse_python(ast.unparse(tree)))
    except (SyntaxError, ValueError):
        same = False
    return whole if same else ast.unparse(tree) + "\n"


def _needs_blank_line(one: ast.stmt, other: ast.stmt) -> bool:
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
    node = parse_python(text).body[0]
    value = getattr(node, "value", None)
    if not isinstance(value, ast.Call) or not (value.args or value.keywords):
        return text
    head = text[: len(text) - len(ast.unparse(value))] + ast.unparse(value.func)
    inner = [ast.unparse(item) for item in value.args] + [ast.unparse(item) for item in value.keywords]
    return head + "(\n" + "".join(f"    {item},\n" for item in inner) + ")"
