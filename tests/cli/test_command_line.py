"""The command line, and the one line of error for what can't be used. No torch and no network."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.cli.click_options import options_from
from torchbisect.cli.main import main
from torchbisect.core.errors import InputError
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.pipeline.run import read_script

SCRIPT = "import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(1)))\n"


def line_of(result: Result, code: int) -> str:
    """Return the one line of error that a command ended with."""
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    lines = [line for line in result.output.splitlines() if line.startswith("torchbisect:")]
    assert len(lines) == 1, result.output
    return lines[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_help_names_every_command_of_the_contract() -> None:
    output = typed("--help").output
    for command in ("run", "check", "minimize", "explain", "bisect", "report", "triage", "builds", "doctor"):
        assert f"\n  {command} " in output


OPTIONS = """
--torch --python --good --bad --find --channel --index-url --extra-index-url --sandbox --image --variant --device --with
--jobs --timeout --repeat --seed --cache-dir --cache-limit --out --json --verbose --quiet
--test --slower-than --max-compile-time --max-recompiles --max-graph-breaks
"""


@pytest.mark.parametrize("command", ["run", "check", "minimize", "explain", "bisect", "triage"])
def test_every_script_command_takes_the_same_options(command: str) -> None:
    output = typed(command, "--help").output
    for option in OPTIONS.split():
        assert option in output


def test_a_missing_script(folder: Path) -> None:
    assert "nowhere.py" in line_of(typed("run", "nowhere.py"), 2)


def test_a_folder_instead_of_a_script(folder: Path) -> None:
    assert "folder" in line_of(typed("run", "."), 2)


def test_a_script_that_is_not_python(folder: Path) -> None:
    (folder / "repro.py").write_text("import torch\nfor x in\n")
    assert "line 2" in line_of(typed("run", "repro.py"), 2)


def test_a_script_that_is_not_text(folder: Path) -> None:
    (folder / "repro.py").write_bytes(b"\xff\xfe\x00\x00" * 40)
    assert "repro.py" in line_of(typed("run", "repro.py"), 2)


def test_an_empty_script(folder: Path) -> None:
    (folder / "repro.py").write_text("  \n")
    assert "empty" in line_of(typed("run", "repro.py"), 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--image", "python:3.11"], "--sandbox docker"),
        (["-v", "-q"], "-v and -q"),
        (["--out", "repro.py"], "--out repro.py"),
        (["--with", " "], "--with"),
        (["--python", "nowhere/python"], "nowhere/python"),
        (["--build-cmd", "make", "--sandbox", "docker"], "--build-cmd"),
        (["--test", " "], "--test"),
        (["--test", "true", "--slower-than", "2"], "--slower-than"),
        (["--test", "true", "--", "--epochs", "3"], "--test"),
    ],
)
def test_options_that_can_not_be_used(folder: Path, words: list[str], said: str) -> None:
    (folder / "repro.py").write_text(SCRIPT)
    assert said in line_of(typed("run", "repro.py", *words), 2)


def test_neither_script_nor_test(folder: Path) -> None:
    assert "--test" in line_of(typed("run"), 2)


def test_nothing_to_minimize(folder: Path) -> None:
    assert "TORCHBISECT_SCRIPT" in line_of(typed("minimize", "--test", "true"), 2)


@pytest.mark.parametrize(
    "words",
    [
        ["--jobs", "0"],
        ["--find", "nothing"],
        ["--timeout", "-1"],
        ["--channel", "x"],
        ["--slower-than", "0"],
        ["--max-compile-time", "0"],
        ["--max-recompiles", "-1"],
        ["--max-graph-breaks", "few"],
    ],
)
def test_values_that_an_option_does_not_take(folder: Path, words: list[str]) -> None:
    result = typed("run", "repro.py", *words)
    assert result.exit_code == 2
    assert words[0] in result.output


@pytest.mark.parametrize("budget", ["60", "0s", "1.5q", "-5s", "s", "5m 3q", "1e3s", "many"])
def test_a_budget_without_a_unit_or_an_amount(folder: Path, budget: str) -> None:
    (folder / "repro.py").write_text("import torch")
    line = line_of(typed("run", "repro.py", f"--budget={budget}"), 2)
    assert "90s" in line
    assert "200q" in line


@pytest.mark.parametrize(
    ("text", "budget"),
    [("90s", Budget(90.0)), ("1.5m", Budget(90.0)), ("1h", Budget(3600.0)), ("200q", Budget(questions=200))],
)
def test_a_budget_is_a_time_or_a_number_of_questions(text: str, budget: Budget) -> None:
    assert Budget.parsed(text) == budget == Budget.parsed(str(budget))


def test_a_report_of_a_folder_without_one(folder: Path) -> None:
    assert "report.json" in line_of(typed("report", "."), 2)


def test_arguments_after_the_dashes_are_the_scripts(folder: Path) -> None:
    (folder / "repro.py").write_text("import")
    assert "line 1" in line_of(typed("run", "repro.py", "--", "--epochs", "3", "--out"), 2)


def test_the_repeated_command_has_only_the_options_that_were_typed() -> None:
    options = Options(
        Path("a b.py"), arguments=("--epochs", "3"), torch="2.8.0", jobs=2, packages=("numpy",), bisect=False
    )
    assert repeat_command(options, "a b.py") == (
        "torchbisect run 'a b.py' --torch 2.8.0 --jobs 2 --with numpy --no-bisect -- --epochs 3"
    )


TEXTS = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=8).filter(str.strip)


AMOUNTS = st.integers(1, 9999)


def read_back(options: Options) -> Options:
    """Return the options of the repeated command."""
    words = shlex.split(repeat_command(options, str(options.script) if options.script else None))
    context = main.commands["run"].make_context("run", words[2:], resilient_parsing=False)
    return options_from("run", context.params)


RATIOS = st.none() | st.floats(1e-6, 1e9)
COUNTS = st.none() | st.integers(0, 99)


@given(
    torch=st.none() | TEXTS,
    budget=st.none() | AMOUNTS.map(lambda seconds: Budget(float(seconds))) | AMOUNTS.map(lambda n: Budget(questions=n)),
    save_trajectory=st.booleans(),
    repeat=st.integers(1, 9),
    seed=st.integers(),
    packages=st.lists(TEXTS, max_size=3).map(tuple),
    arguments=st.lists(TEXTS, max_size=3).map(tuple),
    slower_than=RATIOS,
    max_compile_time=RATIOS,
    max_recompiles=COUNTS,
    max_graph_breaks=COUNTS,
    timeout=RATIOS,
)
def test_the_repeated_command_reads_back_as_the_same_options(**given: Any) -> None:
    options = Options(Path("repro.py"), **given)
    assert read_back(options) == options


@given(test=TEXTS, script=st.none() | st.just(Path("repro.py")), timeout=RATIOS)
def test_the_repeated_command_of_a_test_reads_back_as_well(
    test: str, script: Path | None, timeout: float | None
) -> None:
    options = Options(script, test=test, timeout=timeout)
    assert read_back(options) == options


@given(source=st.text())
def test_any_text_is_read_or_refused_in_one_line(source: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("script") / "repro.py"
    path.write_text(source, encoding="utf-8", errors="surrogatepass")
    try:
        read_script(path)
    except InputError as error:
        said = str(error)
    else:
        said = str(path)
    assert str(path) in said
    assert len(said.splitlines()) == 1
