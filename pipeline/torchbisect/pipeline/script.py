"""The script of a run in every form that it is named: a file, a module, a test, a notebook, standard input."""

from __future__ import annotations

import ast
import codecs
import io
import os
import re
import sys
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchbisect.core.errors import InputError
from torchbisect.core.python_text import parse_python
from torchbisect.core.repro import Files, Repro
from torchbisect.pipeline.notebook import notebook_source
from torchbisect.pipeline.options import Options, is_test
from torchbisect.pipeline.relative_imports import dotted_name, imports_relatively, with_absolute_imports
from torchbisect.pipeline.script_tests import check_test_name
from torchbisect.pipeline.shell_variables import notes_on, passed_variables, setting_line, shell_variables
from torchbisect.pipeline.typed_input import typed_input_notes
from torchbisect.probe.home_files import library_caches, user_name
from torchbisect.probe.inside import open_regular
from torchbisect.probe.module_sources import siblings
from torchbisect.probe.script_files import ScriptPlace, take_snapshot
from torchbisect.probe.script_variables import imports_torch
from torchbisect.probe.suite_run import DRIVER_NAME
from torchbisect.probe.test_command import NO_SCRIPT

# The most bytes of a script. A larger file is named by mistake: a checkpoint, say.
_MOST_BYTES = 2_000_000
_MOST_NOTEBOOK_BYTES = 50_000_000  # with its pictures

# Ways to read the command line; one too many costs a user who writes an option last a warning.
_READS_ARGUMENTS = re.compile(
    r"argv|[Aa]rg(?:ument)?s?_?[Pp]ars|parse_args|getopt|optparse|docopt|simple_parsing|cyclopts|"
    r"\b(?:click|fire|typer|absl|hydra|tyro|argh|plac|defopt|chz|flags|FLAGS|\w*CLI|cli)\b"
)

# Statements that may stand behind another on its line.
_SIMPLE = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert)

#: Code that runs one test of the file that it stands in, under pytest, and raises what the test raised.
_TEST_DRIVER = """\
if __name__ == "__main__":
    import importlib.util
    import sys
    import pytest

    class Outcome:
        error = None

        def pytest_runtest_makereport(self, item, call):
            if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
                self.error = self.error or call.excinfo.value

    outcome = Outcome()
    options = ["-s", "-p", "no:terminal", "-p", "no:cacheprovider", *sys.argv[1:]]
    options += ["-n0"] if importlib.util.find_spec("xdist") else []  # the test runs in this process
    status = pytest.main([*options, __file__ + {node!r}], plugins=[outcome])
    if status == pytest.ExitCode.USAGE_ERROR:  # the project's own options may be those of plugins that are not here
        status = pytest.main(["-o", "addopts=", *options, __file__ + {node!r}], plugins=[outcome])
    if outcome.error is not None:
        raise outcome.error
    sys.exit(int(status))
"""


@dataclass(frozen=True)
class Script:
    """A script and the place where it is run.

    Attributes:
        source: its text.
        place: its folders on this machine.
        notes: lines for the reader about what was changed in the text.
        variables: the variables of the user's shell that the text sets.
    """

    source: str
    place: ScriptPlace
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenedScript:
    """The script that was typed as a repro, lines about it for the reader, and the variables of the shell it gets."""

    repro: Repro
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def opened_repro(options: Options, target: Path) -> OpenedScript:
    """Return the script that was typed, with a copy of its files in ``target``.

    Raises:
        InputError: the script, or a file of ``--files``, can't be used.
        DiskFull: there is no room for the files.
    """
    variables = passed_variables(os.environ) if options.sandbox == "venv" else {}
    if options.script is None:
        return OpenedScript(NO_SCRIPT, (), variables)
    script = open_script(options)
    script = replace(script, source=with_default_device(script.source, options.device))
    if options.workdir is None and options.test is None and options.sandbox == "venv":
        script = _with_shell_variables(script)
    variables = {**script.variables, **variables}
    place = script.place
    if options.workdir is None:
        place = replace(place, paths=_python_path(place.cwd), home=_home())
    source = script.source
    repro = Repro(source, options.arguments, options.seed, str(place.search), place.name)
    if options.test is not None:  # the test runs in the user's own folder
        return OpenedScript(repro, script.notes, variables)
    if options.workdir is not None and options.workdir == options.out:  # the script of an issue, which has no files
        return OpenedScript(replace(repro, directory=None), script.notes, variables)
    snapshot = take_snapshot(
        place,
        source,
        options.arguments,
        target,
        added=[Path(one) for one in options.files],
        results=options.out,
        typed_input=options.typed_input,
    )
    files = snapshot.files
    if options.workdir is None and options.sandbox == "venv":
        texts = (source, *siblings(source, str(place.search)).values())
        files = replace(files, variables=(*library_caches(texts, os.environ), *user_name(texts, os.environ)))
    repro = replace(repro, directory=str(target / files.search), files=files)
    notes = (*script.notes, *typed_input_notes(options.typed_input), *filter(None, [snapshot.left_out]))
    return OpenedScript(repro, notes, variables)


def suite_files(options: Options, words: Sequence[str], target: Path) -> tuple[Files, str]:
    """Copy the files of a test suite, which pytest with these arguments runs in the working directory.

    Return the copy, and one line about what is not in it.

    Raises:
        InputError: a file of ``--files`` can't be used.
        DiskFull: there is no room for the files.
    """
    cwd = Path(os.path.realpath(Path.cwd()))
    snapshot = take_snapshot(
        ScriptPlace(cwd, cwd, cwd, DRIVER_NAME, paths=_python_path(cwd)),
        "open(__file__)",  # a suite looks at its files
        words,
        target,
        added=[Path(one) for one in options.files],
        results=options.out,
    )
    return snapshot.files, snapshot.left_out


def _with_shell_variables(script: Script) -> Script:
    """Return the user's own script with a line that sets the variables of the shell which it needs."""
    texts = (script.source, *siblings(script.source, str(script.place.search)).values())
    variables, secrets = shell_variables(texts, os.environ)
    notes = (*script.notes, *notes_on(variables, secrets))
    source = _with_beginning(script.source, setting_line(variables))
    return replace(script, source=source, notes=notes, variables=variables)


def _home() -> Path | None:
    """Return the user's home, if there is one."""
    home = os.environ.get("HOME", "")
    return Path(os.path.realpath(home)) if os.path.isabs(home) and os.path.isdir(home) else None


def _python_path(cwd: Path) -> tuple[Path, ...]:
    """Return the folders of the user's ``PYTHONPATH``, in their order."""
    words = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = (Path(os.path.realpath(cwd / word)) for word in words if word)
    return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))


def open_script(options: Options) -> Script:
    """Return the script that the options name. Raises ``InputError`` if it can't be used."""
    assert options.script is not None
    typed = str(options.script)
    cwd = Path(os.path.realpath(options.workdir or Path.cwd()))
    if address := re.match(r"(https?):/+", typed):  # a path keeps one slash of it
        written = f"{address.group(1)}://{typed[address.end() :]}"
        raise InputError(f"{written} is no issue's address: a script is not fetched; download it, and name the file")
    if options.module:
        return _module(typed, cwd)
    if typed == "-":
        return _standard_input(cwd)
    file, mark, node = typed.partition("::")
    if is_test(options.script):
        if not file:
            raise InputError(f"{typed}: the file is missing before ::; write it as tests/test_model.py::test_step")
        return _test(cwd / file, mark + node, cwd)
    if options.script.suffix == ".ipynb":
        return _notebook(cwd / options.script, cwd)
    # Where the working directory is another one, the script was typed in that of this process.
    return _file(options.script if options.workdir is None else Path.cwd() / options.script, cwd)


def read_script(path: Path) -> str:
    """Return the text of the script, decoded as Python does it.

    Raises:
        InputError: the file does not exist, can't be read, or is not Python.
    """
    return _decoded(_read(path, _MOST_BYTES), str(path))


def with_default_device(source: str, device: str | None) -> str:
    """Return the script with a line that sets its default device, above its first import of torch.

    What it sets for torch before that, such as environment variables, still comes first.
    """
    if device in (None, "cpu"):
        return source
    body = parse_python(source).body
    at = next((number for number, statement in enumerate(body) if imports_torch(statement)), 0)
    if at and body[at].lineno == body[at - 1].end_lineno:
        at = 0
    return _with_beginning(source, f"import torch; torch.set_default_device({device!r})\n", at)


def argument_reader(script: Path, *, module: bool) -> str | None:
    """Return the text of a script and the modules beside it that may read arguments; ``None`` if nothing there can."""
    if str(script) == "-":
        return ""
    if is_test(script) or script.suffix == ".ipynb":
        return None
    cwd = Path(os.path.realpath(Path.cwd()))
    try:
        found = _module(str(script), cwd) if module else _file(script, cwd)
    except InputError:
        return None
    text = "\n".join((found.source, *siblings(found.source, str(found.place.search)).values()))
    return text if _READS_ARGUMENTS.search(text) else None


def _file(path: Path, cwd: Path) -> Script:
    whole = cwd / path
    if os.path.isfile(whole / "__main__.py"):  # python takes a folder with this file for a script
        folder = Path(os.path.realpath(whole))
        argv0 = "" if path.is_absolute() else str(path)
        return Script(read_script(whole / "__main__.py"), ScriptPlace(cwd, folder, folder, "__main__.py", argv0))
    source = read_script(path if path.is_absolute() else whole)
    folder = Path(os.path.realpath(whole.parent))
    if imports_relatively(source) and (folder / "__init__.py").is_file():
        module, search = dotted_name(folder, path.stem)
        note = f"{path} uses relative imports: it is run as python -m {module} from the folder of its package"
        return Script(
            with_absolute_imports(source, module), ScriptPlace(cwd, folder, search, path.name, "", module), (note,)
        )
    # Python searches the folder of the file that a link leads to.
    search = Path(os.path.realpath(whole)).parent
    argv0 = "" if path.is_absolute() else str(path)
    return Script(source, ScriptPlace(cwd, folder, search, path.name, argv0))


def _module(name: str, cwd: Path) -> Script:
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise InputError(f"-m {name}: this is no module's name; write it with dots, such as pkg.train")
    for base in (cwd, *_python_path(cwd)):
        place = base.joinpath(*parts)
        for path, module in ((place / "__main__.py", f"{name}.__main__"), (place.with_name(parts[-1] + ".py"), name)):
            if os.path.isfile(path):
                source = with_absolute_imports(read_script(path), module)
                folder = Path(os.path.realpath(path.parent))
                return Script(source, ScriptPlace(cwd, folder, cwd, path.name, "", module))
    if name in ("pytest", "unittest"):
        raise InputError(f"-m {name}: name the test itself in its place, such as tests/test_model.py::test_step")
    raise InputError(
        f"-m {name}: there is no such module below {cwd} or in PYTHONPATH; "
        "start torchbisect in the folder of its package"
    )


def _standard_input(cwd: Path) -> Script:
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InputError(f"standard input has more than {_MOST_BYTES // 1_000_000} MB: is it a Python script?")
    return Script(_decoded(data, "standard input"), ScriptPlace(cwd, cwd, cwd, "stdin.py", "-"))


def _test(path: Path, node: str, cwd: Path) -> Script:
    text = read_script(path)
    check_test_name(path.name, node, text)
    source = _with_beginning(text, _TEST_DRIVER.format(node=node))
    folder = Path(os.path.realpath(path.parent))
    return Script(source, ScriptPlace(cwd, folder, cwd, path.name))


def _notebook(path: Path, cwd: Path) -> Script:
    source, notes = notebook_source(_read(path, _MOST_NOTEBOOK_BYTES), path.name)
    check_syntax(str(path), source)
    folder = Path(os.path.realpath(path.parent))
    # A notebook's kernel runs in the folder of the notebook.
    return Script(source, ScriptPlace(folder, folder, folder, f"{path.stem}_notebook.py"), notes)


def _read(path: Path, most: int) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder without graphs of torch.compile: name the script in it")
        with open_regular(path) as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; name the script that fails") from None
    except PermissionError as error:
        if error.errno is None:
            raise InputError(f"{path} is a pipe or a device: name a file, or - for standard input") from None
        raise InputError(f"{path} can't be read: {error.strerror}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path} can't be read: {reason}") from error
    if len(data) > most:
        raise InputError(f"{path} has more than {most // 1_000_000} MB: is it a Python script?")
    return data


def _decoded(data: bytes, name: str) -> str:
    """Return the text of a script, by its coding line. Raises ``InputError`` if it is not Python."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{name} is UTF-16 text, which Python can't run: save it as UTF-8")
    zero = data.find(b"\0")
    if zero >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise InputError(f"{name}, line {line}: a NUL byte, which no Python script has; is it a script?")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        with io.TextIOWrapper(io.BytesIO(data), encoding) as file:
            source = file.read()
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise InputError(f"{name} is not text that Python can read: {error}") from error
    check_syntax(name, source)
    return source


def check_syntax(name: str, source: str) -> None:
    """Check that this Python can parse the script: the minimizer works on its syntax tree."""
    try:
        parse_python(source, name)
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise InputError(f"{name}{line}: {error.msg}; correct the script") from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) if isinstance(error, ValueError) else "its expressions lie too deep in each other"
        raise InputError(f"{name} can't be parsed: {reason}") from None
    if not source.strip():
        raise InputError(f"{name} is empty: name the script that fails")


def _with_beginning(source: str, beginning: str, statements: int = 0) -> str:
    """Return the script with lines put after a number of statements, its docstring and its ``__future__`` imports.

    A single line goes onto that of the statement behind it, where it can: tracebacks keep the user's line numbers.
    """
    first = 0
    following: ast.stmt | None = None
    for number, statement in enumerate(parse_python(source).body):
        is_docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if number >= statements and not is_docstring and not is_future:
            following = statement
            break
        first = statement.end_lineno or 0
    # Python counts lines by these ends only; a form feed, say, ends none.
    lines = re.split(r"(?<=\n)", source.replace("\r\n", "\n").replace("\r", "\n"))
    if beginning.count("\n") == 1 and isinstance(following, _SIMPLE) and following.lineno > first:
        place = following.lineno - 1
        if not following.col_offset and not lines[place][:1].isspace():
            return "".join([*lines[:place], f"{beginning.rstrip()}; {lines[place]}", *lines[place + 1 :]])
    if first and not lines[first - 1].endswith("\n"):
        lines[first - 1] += "\n"
    return "".join([*lines[:first], beginning, *lines[first:]])
