"""The command line of ``torchbisect suite``, and its errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from running import COMMAND

from torchbisect.core.errors import InputError
from torchbisect.triage.suite.suite_runs import pytest_arguments


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("pytest", []),
        ("pytest tests -q", ["tests", "-q"]),
        ("python -m pytest -k 'a or b'", ["-k", "a or b"]),
        ("python3.11 -m pytest tests", ["tests"]),
    ],
)
def test_the_arguments_of_pytest_are_read_from_its_command(command: str, words: list[str]) -> None:
    assert pytest_arguments(command) == words


@pytest.mark.parametrize("command", ["", "tests", "tox -e py", "pytest 'tests", "FOO=1 pytest", "python test.py"])
def test_another_command_is_refused_with_an_example(command: str) -> None:
    with pytest.raises(InputError, match="pytest tests -q"):
        pytest_arguments(command)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("make test", "--good", "2.12.0", "--bad", "2.13.0"), "is no command of pytest"),
        (("pytest", "--good", "2.12.0"), "name both builds"),
    ],
)
def test_wrong_input_is_one_line_and_code_2(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = subprocess.run([COMMAND, "suite", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sys.executable not in done.stderr
