"""Read the definition of a live function or class from its source, as a syntax tree that can stand elsewhere."""

from __future__ import annotations

import ast
import inspect
import os
import symtable
import sys
import sysconfig
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchbisect.core.python_text import parse_python

_INSTALLED = tuple(
    {os.path.realpath(path) + os.sep for name, path in sysconfig.get_paths().items() if "lib" in name}
    | {os.path.realpath(path) + os.sep for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
)


class NotWritable(Exception):
    """A value that no script can make. Its message says which one and why."""


@dataclass(frozen=True)
class Definition:
    """A function or a class as it is written.

    Attributes:
        node: its syntax tree, without decorators where they were applied already.
        names: the global names that it reads, with their values.
        attributes: the attributes that it reads of each global name.
        cells: the variables of the functions around it, with their values.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    names: dict[str, Any]
    attributes: dict[str, set[str]]
    cells: dict[str, Any]


def is_installed(value: Any) -> bool:
    """Return True for a module, class or function of a library, which a script can import."""
    module: Any = (
        value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", "") or "")
    )
    if module is None:
        return True
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__" or file is None:
        return bool(module.__name__ != "__main__")
    path: str = os.path.realpath(file)
    return path.startswith(_INSTALLED)


def function_definition(function: types.FunctionType) -> Definition:
    """Return the definition of a function. Raises ``NotWritable`` if its source can't be read."""
    node = _function_node(function)
    if not isinstance(node, ast.Lambda):
        node.decorator_list, node.returns = [], None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    cells = _cells(function)
    names = {name: function.__globals__[name] for name in _names_read(node) if name in function.__globals__}
    names = {name: value for name, value in names.items() if name not in cells}
    return Definition(node, names, _attributes_read(node), cells)


def class_definition(kind: type) -> Definition:
    """Return the definition of a class. Raises ``NotWritable`` if its source can't be read."""
    node = _parsed(kind, kind.__qualname__).body[0]
    if not isinstance(node, ast.ClassDef):
        raise NotWritable(f"the source of the class {kind.__qualname__} can't be found")
    functions = [item for item in vars(kind).values() if isinstance(item, types.FunctionType)]
    cells = {name: value for function in functions for name, value in _cells(function).items() if name != "__class__"}
    space = {base.__name__: base for base in kind.__bases__ if base is not object}
    space.update(vars(sys.modules[kind.__module__]))
    names = {name: space[name] for name in _names_read(node) if name in space and name not in cells}
    return Definition(node, names, _attributes_read(node), cells)


def _function_node(function: types.FunctionType) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda:
    code = function.__code__
    tree = _parsed(code, function.__qualname__)
    if code.co_name != "<lambda>":
        found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        if found and found[0].name == code.co_name:
            return found[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and _is_code_of(node, code):
            return node
    raise NotWritable(f"the source of {function.__qualname__} can't be found")


def _is_code_of(node: ast.Lambda, code: types.CodeType) -> bool:
    made = compile(ast.Expression(node), "lambda", "eval").co_consts[0]
    names = ("co_names", "co_varnames", "co_consts") if not code.co_freevars else ("co_varnames",)
    return isinstance(made, types.CodeType) and all(getattr(made, name) == getattr(code, name) for name in names)


def _parsed(item: Any, name: str) -> ast.Module:
    """Return the source of a code object or a class as a tree; the line of a lambda may begin within a statement."""
    try:
        text = textwrap.dedent("".join(inspect.getsourcelines(item)[0]))
    except (OSError, TypeError) as error:
        raise NotWritable(f"the source of {name} can't be read: {error}") from None
    for shortened in _shortened(text):
        try:
            return parse_python(shortened)
        except SyntaxError:
            continue
    raise NotWritable(f"the source of {name} is no statement by itself")


def _shortened(text: str) -> Iterator[str]:
    """Yield a text, and what is left of it from each lambda on without its last characters."""
    yield text
    start = text.find("lambda")
    while start >= 0:
        rest = text[start:].rstrip()
        for end in range(len(rest), 0, -1):
            yield f"({rest[:end]})"
        start = text.find("lambda", start + 1)


def _cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # the cell is still empty
    return found


def _names_read(node: ast.AST) -> list[str]:
    """Return the names that a definition reads from around it, in their order; no parameter or local variable."""
    outer: set[str] = set()
    tables = [symtable.symtable(ast.unparse(node), "definition", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_outermost = table.get_type() == "module"
        outer.update(one.get_name() for one in table.get_symbols() if one.is_global() or is_outermost)
    names = dict.fromkeys(item.id for item in ast.walk(node) if isinstance(item, ast.Name))
    return [name for name in names if name in outer]


def _attributes_read(node: ast.AST) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name):
            found.setdefault(item.value.id, set()).add(item.attr)
    return found
