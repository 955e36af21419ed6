"""Description of a Python by itself, and one-line errors for everything else."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest
from packaging.tags import sys_tags

from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.errors import InputError


def test_this_python_takes_what_packaging_says_it_takes(interpreter: Interpreter) -> None:
    own = [tag for tag in sys_tags() if "musl" not in tag.platform]
    assert interpreter.tags == set(own)
    assert interpreter.version == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("torch-2.8.0-py3-none-any.whl", True),
        (f"torch-2.8.0-cp3{sys.version_info[1]}-cp3{sys.version_info[1]}-win_amd64.whl", False),
        ("torch-2.8.0-cp27-cp27mu-manylinux1_x86_64.whl", False),
        ("torch-2.8.0.tar.gz", False),
        ("nonsense", False),
    ],
)
def test_accepted_wheels(interpreter: Interpreter, name: str, taken: bool) -> None:
    assert interpreter.accepts(name) is taken


def test_a_path_in_an_environment_stays_in_it(tmp_path: Path, interpreter: Interpreter) -> None:
    """The link leads to a Python that has other packages."""
    venv.create(tmp_path / "env", symlinks=True, with_pip=False)
    found = Interpreter.of(tmp_path / "env")
    assert found.path == tmp_path / "env" / "bin" / "python"
    assert found.installed_torch is None
    assert found.base == interpreter.base
    assert found.identity == interpreter.identity


def test_a_bare_name_is_found_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    assert Interpreter.of(Path(sys.executable).name).path == Path(sys.executable)


def test_a_relative_path_is_kept_as_an_absolute_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(sys.executable).parent.parent)
    assert Interpreter.of(f"bin/{Path(sys.executable).name}").path == Path(sys.executable)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\nexit 3\n", "exit 3"),
        ("#!/bin/sh\necho some words >&2\n", "some words"),
        ("not a program at all", "can't be started"),
        ("#!/bin/sh\necho '{\"version\": [3, 7, 1]}'\n", "3.8 or newer"),
        ('#!/bin/sh\necho \'{"version": [3, 11, 1], "implementation": "pypy"}\'\n', "name a CPython"),
    ],
)
def test_a_program_that_is_no_python_gives_a_one_line_error(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "python"
    program.write_text(script)
    program.chmod(0o755)
    with pytest.raises(InputError, match=words) as caught:
        Interpreter.of(program)
    assert "\n" not in str(caught.value)
    assert "--python" in str(caught.value)


def test_a_missing_path_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no Python at"):
        Interpreter.of(tmp_path / "none")
    with pytest.raises(InputError, match="no bin/python"):
        Interpreter.of(tmp_path)
