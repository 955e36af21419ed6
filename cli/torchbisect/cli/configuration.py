"""Options from environment variables and ``pyproject.toml``.

The command line wins, then the variable ``TORCHBISECT_<OPTION>``, then the file in the working directory, then the
default. The file has one table for all commands; each takes the options that it has.
"""

from __future__ import annotations

import datetime
import difflib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from torchbisect.core.command_line import Program, expect_json, say
from torchbisect.core.decode import DecodeError
from torchbisect.core.errors import InputError
from torchbisect.core.regular_file import read_regular_file
from torchbisect.core.toml import read_toml

FILE = "pyproject.toml"
_TABLE = "[tool.torchbisect]"
_LARGEST = 1_000_000

#: Options that run a program on this machine, read its files, write outside the folder, or say what holds a container.
#: A project that comes from a stranger may bring a ``pyproject.toml``, and its script may be meant for a container; so
#: these are never taken from there.
NOT_FROM_A_FILE = frozenset(
    (
        "add",
        "allow-sdists",
        "also",
        "build-cmd",
        "cache-dir",
        "comment",
        "files",
        "git",
        "image",
        "out",
        "patch",
        "python",
        "runtime",
        "test",
    )
)

#: Set for every ``--test`` command, and by nobody else: ``TORCHBISECT_PYTHON`` is then the environment's Python.
_INSIDE_TEST = "TORCHBISECT_TORCH_VERSION"


class ConfiguredProgram(Program):
    """A group of commands whose options may also come from the environment and from ``pyproject.toml``."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with all its options. Raises ``InputError`` if the file has something that is no option."""
        for command in self.commands.values():
            for option in options_of(command):
                taken = option_name(option) == "python" and _INSIDE_TEST in os.environ
                option.envvar = None if taken else variable_of(option)
        ctx.default_map = file_settings(Path.cwd() / FILE, self.commands)
        if _asks_for_json(self.commands, ctx.default_map or {}):
            expect_json()
        try:
            return super().invoke(ctx)
        except click.BadParameter as error:
            source = _source_of(error)
            if not source:
                raise
            raise click.BadParameter(
                error.message.rstrip(".") + source, error.ctx, error.param, error.param_hint
            ) from None


def options_of(command: click.Command) -> list[click.Option]:
    """Return the options of a command that have a value."""
    return [param for param in command.params if isinstance(param, click.Option) and param.expose_value]


def option_name(option: click.Option) -> str:
    """Return the name of an option as it is typed, without its dashes: ``cache-dir``."""
    return next(name for name in option.opts if name.startswith("--")).removeprefix("--")


def variable_of(option: click.Option) -> str:
    """Return the environment variable of an option: ``TORCHBISECT_CACHE_DIR``."""
    return f"TORCHBISECT_{option_name(option).upper().replace('-', '_')}"


def file_settings(path: Path, commands: Mapping[str, click.Command]) -> dict[str, dict[str, Any]]:
    """Return the values of the file's table for each command, by the names of click's parameters.

    Raises ``InputError`` for a key that is no option, one that a file may not set, and a value of another type.
    """
    table = _table(path)
    if not table:
        return {}
    given = {key.replace("_", "-"): value for key, value in table.items()}
    every = [option for command in commands.values() for option in options_of(command)]
    known, lists = set(map(option_name, every)), {option_name(option) for option in every if option.multiple}
    _check_names(path, given, known)
    values: dict[str, dict[str, Any]] = {}
    for name, command in commands.items():
        mine = {option_name(option): option for option in options_of(command)}
        values[name] = {}
        for key in given.keys() & mine.keys():
            # builds takes one channel, run several: a list says nothing about the first.
            if mine[key].multiple or key not in lists or not isinstance(given[key], list):
                values[name][str(mine[key].name)] = _value(path, mine[key], given[key])
    say(f"{FILE} sets {', '.join(f'--{key}' for key in given)}", "note: ")
    return values


def _table(path: Path) -> dict[str, Any]:
    """Return the table of this user's file; empty where there is none, and where others can write the file."""
    try:
        text = read_regular_file(path, _LARGEST).decode("utf-8")
        status = path.stat()
    except (OSError, InputError, UnicodeDecodeError):
        return {}
    if "torchbisect" not in text:
        return {}
    try:
        tool = read_toml(text).get("tool")
    except DecodeError as error:
        raise InputError(f"{path} is no TOML ({error}): correct it, or run the command in another folder") from None
    table = tool.get("torchbisect") if isinstance(tool, dict) else None
    if table is None:
        return {}
    if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
        say(f"{path} belongs to another user, or others can write to it: {_TABLE} is not read", "note: ")
        return {}
    if not isinstance(table, dict):
        raise InputError(f'{path}: {_TABLE} is no table: write the options below that line, as in torch = "2.8.0"')
    return table


def _check_names(path: Path, names: Iterable[str], known: set[str]) -> None:
    """Raise ``InputError`` if a name is no option, or one that a file may not set."""
    unknown = []
    for name in sorted(set(names) - known):
        near = difflib.get_close_matches(name, sorted(known), 1)
        unknown.append(f"{name} (is it {near[0]}?)" if near else name)
    if unknown:
        raise InputError(
            f"{path}: {_TABLE} has unknown options: {', '.join(unknown)}; torchbisect run --help names all"
        )
    refused = sorted(NOT_FROM_A_FILE.intersection(names))
    if refused:
        variable = f"TORCHBISECT_{refused[0].upper().replace('-', '_')}"
        raise InputError(
            f"{path}: {_TABLE} may not set {', '.join(refused)}, which would run programs, reach files of this "
            f"machine or choose its sandbox: use --{refused[0]} or the variable {variable}"
        )


def _value(path: Path, option: click.Option, value: Any) -> Any:
    """Return a value of the file as click expects it. Raises ``InputError`` if its type is another one."""
    if option.multiple:
        return [_single(path, option, one) for one in (value if isinstance(value, list) else [value])]
    return _single(path, option, value)


def _single(path: Path, option: click.Option, value: Any) -> Any:
    number = isinstance(option.type, (click.types.IntParamType, click.types.FloatParamType)) or option.count
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = value.isoformat()  # a nightly's day
    if option.is_flag:
        good, wanted = isinstance(value, bool), "true or false"
    elif number:
        good, wanted = isinstance(value, (int, float, str)) and not isinstance(value, bool), "a number"
    else:
        good, wanted = isinstance(value, str), "a text in quotes"
    if not good:
        raise InputError(f"{path}: {_TABLE} {option_name(option)} = {value!r}: write {wanted}")
    return value


def _asks_for_json(commands: Mapping[str, click.Command], settings: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return True if the environment or the file asks for JSON; an error is then JSON too."""
    if any(values.get("as_json") is True for values in settings.values()):
        return True
    named = {variable_of(option) for one in commands.values() for option in options_of(one) if option.name == "as_json"}
    return any(os.environ.get(name, "").lower() in ("1", "true", "t", "yes", "y", "on") for name in named)


def _source_of(error: click.BadParameter) -> str:
    """Return where a value that can't be used comes from, if it was not typed."""
    if error.ctx is None or error.param is None or error.param.name is None:
        return ""
    source = error.ctx.get_parameter_source(error.param.name)
    if source is ParameterSource.ENVIRONMENT and isinstance(error.param, click.Option):
        return f" (from the environment variable {variable_of(error.param)})"
    return f" (from {_TABLE} in {FILE})" if source is ParameterSource.DEFAULT_MAP else ""
