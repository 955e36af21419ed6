"""Magics of a notebook that change what later cells see, written as Python."""

from __future__ import annotations

import ast
import itertools
import re

from torchbisect.core.python_text import parse_python

# Values with one of these are expanded by IPython.
_EXPANDED = re.compile(r"[${}]")
_MOST_NESTED = 10
_SETTING = re.compile(r"(\w+)(?:\s*=\s*|\s+)(\S.*)")


def line_as_python(magic: str, rest: str) -> str | None:
    """Return the Python of a line magic on one line; ``None`` for one that later cells do not need.

    They are ``%env NAME=value``, ``%cd FOLDER``, and ``%run FILE`` without options and arguments.
    """
    words = rest.strip()
    if not words or words.startswith("-") or _EXPANDED.search(words):
        return None
    unquoted = words[1:-1] if words[0] in "'\"" and words[-1] == words[0] and len(words) > 1 else words
    setting = _SETTING.fullmatch(words)
    if magic in ("%env", "%set_env") and setting is not None:
        return f"import os; os.environ[{setting[1]!r}] = {setting[2].strip()!r}"
    if magic == "%cd":
        return f"import os; os.chdir(os.path.expanduser({unquoted!r}))"
    if magic == "%run" and (unquoted is not words or not re.search(r"\s", words)) and not words.endswith(".ipynb"):
        name = unquoted if unquoted.endswith(".py") else f"{unquoted}.py"
        names = f"runpy.run_path({name!r}, run_name='__main__').items()"
        return f"import runpy; globals().update((k, v) for k, v in {names} if not k.startswith('__'))"
    return None


def cell_as_python(head: str, text: str) -> str | None:
    """Return the Python of a cell under ``%%writefile FILE``: it writes the file, which later cells may import."""
    found = re.fullmatch(r"%%(?:writefile|file)\s+(-a\s+)?(\S+|'[^']+'|\"[^\"]+\")", head.strip())
    if found is None or _EXPANDED.search(found[2]):
        return None
    mode = "a" if found[1] else "w"
    name = found[2].strip("'\"")
    return f"import importlib; open({name!r}, {mode!r}).write({text!r}); importlib.invalidate_caches()\n"


def with_awaits_run(source: str) -> str:
    """Return the script with each ``await`` outside of a function run to its end, as a notebook's kernel does."""
    for _ in range(_MOST_NESTED):
        if "await" not in source:
            break
        try:
            found = _awaits(parse_python(source))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            break
        if not found:
            break
        source = _run(source, found)
    return source


def _run(source: str, awaits: list[ast.Await]) -> str:
    """Replace awaits that do not lie in each other."""
    data = source.encode("utf-8", "surrogatepass")
    starts = [0, *itertools.accumulate(map(len, data.splitlines(keepends=True)))]
    for node in sorted(awaits, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        start, inner = starts[node.lineno - 1] + node.col_offset, node.value
        first, end = starts[inner.lineno - 1] + inner.col_offset, starts[(node.end_lineno or 0) - 1]
        end += node.end_col_offset or 0
        data = data[:start] + b"__import__('asyncio').run(" + data[first:end] + b")" + data[end:]
    return data.decode("utf-8", "surrogatepass")


def _awaits(tree: ast.Module) -> list[ast.Await]:
    """Return the awaits outside of functions that lie in no other."""
    found: list[ast.Await] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Await):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return found
