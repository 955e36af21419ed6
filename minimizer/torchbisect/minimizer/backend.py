"""Naming the backend in the script itself, so that the minimal script uses the cheapest one that shows the mismatch."""

from __future__ import annotations

import ast

from torchbisect.minimizer.tree import Edit, Function, apply, parse, text_of, walk

_FOR_INDUCTOR_ONLY = frozenset({"mode", "options"})


def with_backend(source: str, backend: str) -> str | None:
    """The script with ``backend`` named in each of its ``torch.compile`` calls and decorators.

    ``mode`` and ``options`` go when the backend is another than inductor, which takes none. Returns ``None`` if no
    call is found (it may be reached under another name). Raises ``SyntaxError`` if the script is not Python.
    """
    tree = parse(source)
    imports = [node for node in walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "torch"]
    names = {alias.asname or alias.name for node in imports for alias in node.names if alias.name == "compile"}
    edits: list[Edit] = []
    for node in walk(tree):
        if isinstance(node, (*Function, ast.ClassDef)):
            edits += [Edit.of(item, _called(item, backend)) for item in node.decorator_list if _is_compile(item, names)]
        if isinstance(node, ast.Call) and _is_compile(node.func, names):
            edits.append(Edit.of(node, _named(node, backend)))
    return text_of(apply(tree, edits)) + "\n" if edits else None


def _is_compile(node: ast.expr, names: set[str]) -> bool:
    """``torch.compile``, a ``compile`` imported from torch, ``model.compile``; not the built-in nor ``re.compile``."""
    if isinstance(node, ast.Attribute):
        return node.attr == "compile" and ast.unparse(node.value) not in ("re", "regex", "builtins")
    return isinstance(node, ast.Name) and node.id in names


def _called(decorator: ast.expr, backend: str) -> ast.expr:
    return ast.Call(func=decorator, args=[], keywords=[_keyword(backend)])


def _named(call: ast.Call, backend: str) -> ast.expr:
    gone = {"backend"} | (_FOR_INDUCTOR_ONLY if backend != "inductor" else frozenset())
    keywords = [keyword for keyword in call.keywords if keyword.arg not in gone]
    return ast.Call(func=call.func, args=call.args, keywords=[*keywords, _keyword(backend)])


def _keyword(backend: str) -> ast.keyword:
    return ast.keyword(arg="backend", value=ast.Constant(backend))
