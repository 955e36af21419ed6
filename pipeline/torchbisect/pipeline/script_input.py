"""Reads the user's script, or says in one line why it can't be used."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path

from torchbisect.core.errors import InputError

# A repro is a script somebody wrote; what is larger is a mistake, such as a checkpoint's name.
_LARGEST = 2_000_000


def read_script(path: Path) -> str:
    """The script's text, decoded as Python would.

    Raises:
        InputError: it isn't there, can't be read, or isn't Python.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder: name the script in it")
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path} has more than {_LARGEST // 1_000_000} MB: is it a Python script?")
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


def on_device(source: str, device: str | None) -> str:
    """The script with its default device set, so that what it makes without naming a device is made there.

    The line stands in the script itself, below its docstring and ``__future__`` imports: whatever runs it, plain Python
    too, then runs it there.
    """
    if device in (None, "cpu"):
        return source
    body = ast.parse(source).body
    first = 0
    for number, statement in enumerate(body):
        told = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not told and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        first = statement.end_lineno or 0
    lines = source.splitlines(keepends=True)
    if first and not lines[first - 1].endswith("\n"):
        lines[first - 1] += "\n"
    return "".join([*lines[:first], f"import torch; torch.set_default_device({device!r})\n", *lines[first:]])


def _check_syntax(path: Path, source: str) -> None:
    """The minimizer works on the syntax tree, so this Python has to understand the script too."""
    try:
        ast.parse(source, str(path))
    except SyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}; correct the script") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path} can't be parsed: {error}") from None
    if not source.strip():
        raise InputError(f"{path} is empty: name the script that fails")
