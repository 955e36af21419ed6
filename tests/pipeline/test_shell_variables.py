"""The variables of the shell that a script gets, and those that it does not get."""

from __future__ import annotations

import pytest

from torchbisect.pipeline.script import _with_beginning
from torchbisect.pipeline.shell_variables import notes_on, setting_line, shell_variables

SCRIPT = """
import os
mode = os.environ["ACME_MODE"]
rank = os.environ.get('ACME_RANK', '0')
home = os.getenv("HOME")
token = os.environ["HF_TOKEN"]
unset = os.getenv("ACME_UNSET")
kept = os.environ["TORCH_HOME"]
"""
SHELL = {
    "ACME_MODE": "it's \\ \n",
    "ACME_RANK": "1",
    "ACME_OTHER": "x",
    "HOME": "/home/me",
    "HF_TOKEN": "hunter2",
    "TORCH_HOME": "/home/me/torch",
    "TORCH_LOGS": "dynamo",
    "TORCHINDUCTOR_FREEZING": "1",
    "OMP_NUM_THREADS": "1",
}


def test_what_the_script_names_and_what_torch_reads() -> None:
    variables, secrets = shell_variables([SCRIPT], SHELL)
    assert variables == {name: SHELL[name] for name in ("ACME_MODE", "ACME_RANK", "TORCHINDUCTOR_FREEZING")}
    assert secrets == ("HF_TOKEN",)
    assert not any("hunter2" in note for note in notes_on(variables, secrets))


def test_the_line_sets_them() -> None:
    variables, _ = shell_variables([SCRIPT], SHELL)
    line = setting_line(variables)
    assert line.count("\n") == 1
    names: dict[str, object] = {}
    exec(line.replace("import os", "class os: environ = {}", 1).replace("; ", "\n"), names)
    assert names["os"].environ == variables  # type: ignore[attr-defined]


def test_a_script_that_reads_none_stays_as_it_is() -> None:
    assert shell_variables(["import torch\n"], {"ACME_MODE": "x"}) == ({}, ())
    assert setting_line({}) == ""
    assert notes_on({}, ()) == ()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\n", "SET; import torch\n"),
        ('"""Text."""\n\nfrom __future__ import annotations\n\nx = (\n    1)\n',
         '"""Text."""\n\nfrom __future__ import annotations\n\nSET; x = (\n    1)\n'),
        ("#!/usr/bin/python\n# text\nimport torch; x = 1\n", "#!/usr/bin/python\n# text\nSET; import torch; x = 1\n"),
        ("def f(): pass\n", "SET\ndef f(): pass\n"),
        ("'text'; x = 1\n", "'text'; x = 1\nSET\n"),
        ("", "SET\n"),
    ],
)  # fmt: skip
def test_tracebacks_keep_the_users_line_numbers(source: str, expected: str) -> None:
    assert _with_beginning(source, "SET\n") == expected
