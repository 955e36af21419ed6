"""The variables of the shell that a script gets, and those that it does not get."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbisect.containers.process.run_command import PASSED_VARIABLES
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.pipeline.report_builder import ReportBuilder
from torchbisect.pipeline.script import _with_beginning, opened_repro
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


def test_names_by_a_function_and_by_their_beginning() -> None:
    script = """
import os
def setting(name, default):
    return os.environ.get(f"ACME_{name}", default)
def read(name):
    return os.environ[name]
shards, rest = read("SHARD_COUNT"), {k: v for k, v in os.environ.items() if k.startswith("LAB_")}
seed = os.environ.get("PYTHONHASHSEED")
"""
    given = {"SHARD_COUNT": "2", "LAB_RATE": "3", "ACME_RANK": "1", "PYTHONHASHSEED": "0"}
    shell = {**given, "LABEL": "x", "LAB_TOKEN": "t", "PYTHONPATH": "/"}
    variables, secrets = shell_variables([script], shell)
    assert variables == given
    assert secrets == ("LAB_TOKEN",)
    assert shell_variables(["print('SHARD_COUNT')"], shell) == ({}, ())


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


def test_the_command_that_repeats_the_run_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PASSED_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in {**SHELL, "ACME_MODE": "two words", "CXX": "/opt/me/g++"}.items():
        monkeypatch.setenv(name, value)
    script = tmp_path / "repro.py"
    script.write_text(SCRIPT)
    options = Options(script, torch="2.8.0")
    opened = opened_repro(options, tmp_path / "copy")
    assert ReportBuilder(options, opened.repro, opened.variables).report().command == (
        "ACME_MODE='two words' ACME_RANK=1 TORCHINDUCTOR_FREEZING=1 OMP_NUM_THREADS=1 "
        "torchbisect run --torch 2.8.0 repro.py"
    )


def test_a_container_gets_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TORCHINDUCTOR_FREEZING", "1")
    script = tmp_path / "repro.py"
    script.write_text(SCRIPT)
    assert opened_repro(Options(script, sandbox="docker"), tmp_path / "copy").variables == {}


def test_a_secret_in_a_value_is_left_out() -> None:
    command = repeat_command(Options(Path("a.py")), "a.py", {"ACME_URL": "https://me:hunter2@host.example/x"})
    assert "hunter2" not in command
    assert command.endswith(" torchbisect run a.py")
