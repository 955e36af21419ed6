"""Naming the backend in the script itself, so that the minimal script uses the cheapest one that shows the mismatch."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchbisect.minimizer.syntax.tree import Edit, Function, apply, parse, quoting_itself, text_of, walk

_FOR_INDUCTOR_ONLY = frozenset({"mode", "options"})


def with_backend(source: str, backend: str) -> str | None:
    """The script with ``backend`` named in each of its ``torch.compile`` calls and decorators.

    ``mode`` and ``options`` go when the backend is another than inductor, which takes none. Returns ``None`` if no
    call is found (it may be reached under another name). Raises ``SyntaxError`` if the script is not Python.
    """
    tree = quoting_itself(parse(source))
    compiles = _compilers(tree)
    edits: list[Edit] = []
    for node in walk(tree):
        if isinstance(node, (*Function, ast.ClassDef)):
            edits += [Edit.of(item, _called(item, backend)) for item in node.decorator_list if compiles(item)]
        if isinstance(node, ast.Call) and compiles(node.func):
            edits.append(Edit.of(node, _named(node, backend)))
    return text_of(apply(tree, edits)) + "\n" if edits else None


def _compilers(tree: ast.Module) -> Callable[[ast.expr], bool]:
    """Says what compiles: ``torch.compile``, a ``compile`` imported from torch, ``model.compile``.

    Neither the built-in nor ``re.compile``, and no method of that name in a script that defines one of its own.
    """
    imported = [node for node in walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "torch"]
    names = {alias.asname or alias.name for node in imported for alias in node.names if alias.name == "compile"}
    plain = [alias for node in walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    torches = {alias.asname or alias.name for alias in plain if alias.name == "torch"}
    own = any(isinstance(node, Function) and node.name == "compile" for node in walk(tree))

    def compiles(node: ast.expr) -> bool:
        if not isinstance(node, ast.Attribute) or node.attr != "compile":
            return isinstance(node, ast.Name) and node.id in names
        owner = ast.unparse(node.value)
        return owner in torches or (not own and owner not in ("re", "regex", "builtins"))

    return compiles


def is_compile(node: ast.expr) -> bool:
    """Whether an expression is ``torch.compile`` or a call of it, as far as its last name tells."""
    inner = node.func if isinstance(node, ast.Call) else node
    return isinstance(inner, ast.Attribute) and inner.attr == "compile"


def _called(decorator: ast.expr, backend: str) -> ast.expr:
    return ast.Call(func=decorator, args=[], keywords=[_keyword(backend)])


def _named(call: ast.Call, backend: str) -> ast.expr:
    gone = {"backend"} | (_FOR_INDUCTOR_ONLY if backend != "inductor" else frozenset())
    keywords = [keyword for keyword in call.keywords if keyword.arg not in gone]
    return ast.Call(func=call.func, args=call.args, keywords=[*keywords, _keyword(backend)])


def _keyword(backend: str) -> ast.keyword:
    return ast.keyword(arg="backend", value=ast.Constant(backend))
