"""The user's script: read, checked, and set to its default device."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path

from torchbisect.core.errors import InputError

# The most bytes of a script. A larger file is named by mistake: a checkpoint, say.
_MOST_BYTES = 2_000_000


def read_script(path: Path) -> str:
    """Return the text of the script, decoded as Python does it.

    Raises:
        InputError: the file does not exist, can't be read, or is not Python.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder: name the script in it")
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} has more than {_MOST_BYTES // 1_000_000} MB: is it a Python script?")
        with tokenize.open(path) as file:
            source = file.read()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; name the script that fails") from None
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not text that Python can read: {error}") from error
    _check_syntax(path, source)
    return source


def with_default_device(source: str, device: str | None) -> str:
    """Return the script with a line that sets its default device, so that plain Python uses that device too.

    The line follows the docstring and the ``__future__`` imports.
    """
    if device in (None, "cpu"):
        return source
    body = ast.parse(source).body
    first = 0
    for number, statement in enumerate(body):
        is_docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        first = statement.end_lineno or 0
    lines = source.splitlines(keepends=True)
    if first and not lines[first - 1].endswith("\n"):
        lines[first - 1] += "\n"
    return "".join([*lines[:first], f"import torch; torch.set_default_device({device!r})\n", *lines[first:]])


def _check_syntax(path: Path, source: str) -> None:
    """Check that this Python can parse the script: the minimizer works on its syntax tree."""
    try:
        ast.parse(source, str(path))
    except SyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}; correct the script") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path} can't be parsed: {error}") from None
    if not source.strip():
        raise InputError(f"{path} is empty: name the script that fails")
