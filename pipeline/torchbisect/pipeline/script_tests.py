"""The names of tests in a file, as far as its text decides them."""

from __future__ import annotations

import ast

from torchbisect.core.errors import InputError
from torchbisect.core.printable import one_line
from torchbisect.core.python_text import parse_python

_MOST_SHOWN = 5


def check_test_name(file: str, node: str, source: str) -> None:
    """Check the part of ``FILE::TEST`` behind the file, by the file's text.

    Raises:
        InputError: it is empty, or the file has no such name and nothing that may make one when it runs.
    """
    names = node.removeprefix("::").split("::")
    if not all(name.strip() for name in names):
        raise InputError(f"{file}{one_line(node)}: a test's name is missing behind ::; write {file}::test_step, say")
    tests, is_fixed = _tests(parse_python(source))
    wanted = names[0].partition("[")[0]
    if not is_fixed or wanted in tests or "." in wanted:  # a doctest has a dotted name
        return
    shown = [name for name in tests if name.lower().startswith("test")]
    there = f"it has {', '.join(shown[:_MOST_SHOWN])}" if shown else "it has no test at all"
    raise InputError(f"{file}: there is no test {one_line(wanted, 80)} in it ({there}): correct the name behind ::")


def _tests(tree: ast.Module) -> tuple[list[str], bool]:
    """Return the names at the top of a module, and false if it may make others when it runs."""
    names: list[str] = []
    is_fixed = True
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(statement.name)
            is_fixed = is_fixed and all(_is_of_pytest(one) for one in statement.decorator_list)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names += [(one.asname or one.name).partition(".")[0] for one in statement.names]
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            names += [one.id for one in ast.walk(statement) if isinstance(one, ast.Name)]
        elif not _does_nothing(statement):
            is_fixed = False
    return names, is_fixed and "*" not in names


def _is_of_pytest(decorator: ast.expr) -> bool:
    """Return true for a decorator of pytest, which makes no further names."""
    return ast.unparse(decorator).startswith("pytest.")


def _does_nothing(statement: ast.stmt) -> bool:
    """Return true for a statement that makes no name: a text, a call of print or torch, ``if __name__ == ...``."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func).startswith(("print", "torch."))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
