"""Description of a Python by itself, and one-line errors for everything else."""

from __future__ import annotations

import json
import os
import sys
import venv
from pathlib import Path

import pytest
from packaging.tags import sys_tags

from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.errors import InputError, MachineError


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


_ANSWER = {
    "version": [3, 11, 7], "implementation": "cpython", "platform": "linux-x86_64", "libc": "glibc 2.36", "mac": "",
    "free_threaded": False, "debug": False, "base": "/usr/bin/python3", "user_base": "/home/one/.local", "torch": None,
}  # fmt: skip
_ANSWERS = {
    "text": "hello",
    "list": "[]",
    "torn": json.dumps(_ANSWER)[:-5],
    "deep": "[" * 100_000,
    "digits": json.dumps({**_ANSWER, "version": 0}).replace("0", "9" * 5000),
    "empty": "{}",
    "two-numbers": json.dumps({**_ANSWER, "version": [3, 11]}),
    "text-for-numbers": json.dumps({**_ANSWER, "version": "3.11.7"}),
    "large-number": json.dumps({**_ANSWER, "version": [3, 10**30, 7]}),
    **{f"{name}-is-a-list": json.dumps({**_ANSWER, name: [1]}) for name in _ANSWER},
}


@pytest.mark.parametrize("answer", _ANSWERS.values(), ids=_ANSWERS)
def test_a_description_that_is_none_gives_a_one_line_error(answer: str) -> None:
    with pytest.raises(InputError, match="--python") as caught:
        Interpreter.from_answer(Path("python3"), answer)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("part", "platforms"),
    [
        ({}, 36),
        ({"libc": None}, 1),
        ({"libc": "glibc"}, 1),
        ({"libc": f"glibc 2.{'9' * 30}"}, 1),
        ({"libc": "glibc x.y"}, 1),
        ({"platform": "macosx-14.0-arm64", "mac": "14.1"}, None),
        ({"platform": "macosx-14.0-arm64", "mac": f"{'9' * 30}.1"}, 1),
        ({"platform": "macosx-14.0-arm64", "mac": "x"}, 1),
    ],
)
def test_platforms_are_bounded(part: dict[str, str], platforms: int | None) -> None:
    found = Interpreter.from_answer(Path("python3"), json.dumps({**_ANSWER, **part})).platforms
    assert 0 < len(found) < 100
    assert platforms in (None, len(found))


def test_a_program_that_prints_without_end_is_no_python(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nyes x | head -c 50000000; printf '\\377'\n")
    program.chmod(0o755)
    with pytest.raises(InputError, match="--python") as caught:
        Interpreter.of(program)
    assert len(str(caught.value)) < 400


def test_a_missing_path_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no Python at"):
        Interpreter.of(tmp_path / "none")
    with pytest.raises(InputError, match="no bin/python"):
        Interpreter.of(tmp_path)


def test_a_python_that_does_not_answer_is_no_fault_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchbisect.containers.python.interpreter._ANSWER_SECONDS", 0.2)
    (tmp_path / "python").write_text("#!/bin/sh\nsleep 60\n")
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(MachineError, match="did not answer in 0 s: end other programs"):
        Interpreter.of(tmp_path / "python")
