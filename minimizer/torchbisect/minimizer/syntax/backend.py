"""Write the backend into the script, so that the minimal script names the cheapest backend that shows the mismatch."""

from __future__ import annotations

import ast

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.syntax.edits import Edit, apply, inline_docstring
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, text_of, walk

_INDUCTOR_ONLY = frozenset({"mode", "options"})


def with_backend(source: str, backend: str) -> str | None:
    """Return the script with ``backend`` named in each of its ``torch.compile`` calls and decorators.

    ``mode`` and ``options`` are removed when the backend is not inductor, because no other backend takes them.
    Returns ``None`` if the script has none of them. Raises ``SyntaxError`` if it is not Python.
    """
    tree = inline_docstring(parse_python(source))
    torch_names = TorchNames.of(tree)
    edits: list[Edit] = []
    for node in walk(tree):
        if isinstance(node, (*Function, ast.ClassDef)):
            plain = [item for item in node.decorator_list if not isinstance(item, ast.Call)]
            edits += [
                Edit.of(item, ast.Call(func=item, args=[], keywords=[_keyword(backend)]))
                for item in plain
                if torch_names.is_compile(item)
            ]
        if isinstance(node, ast.Call) and (torch_names.is_compile(node) or torch_names.is_partial_compile(node)):
            edits.append(Edit.of(node, _with_keyword(node, backend)))
    return text_of(apply(tree, edits)) + "\n" if edits else None


def _with_keyword(call: ast.Call, backend: str) -> ast.expr:
    removed = {"backend"} | (_INDUCTOR_ONLY if backend != "inductor" else frozenset())
    keywords = [keyword for keyword in call.keywords if keyword.arg not in removed]
    return ast.Call(func=call.func, args=call.args, keywords=[*keywords, _keyword(backend)])


def _keyword(backend: str) -> ast.keyword:
    return ast.keyword(arg="backend", value=ast.Constant(backend))
