"""The command line, and the one line of error for what can't be used. No torch and no network."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.cli.click_options import options_from
from torchbisect.cli.commands import main
from torchbisect.core.errors import InputError
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.script import read_script

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
--torch --python --good --bad --find --channel --index-url --extra-index-url --sandbox --image --runtime --variant
--device --with --jobs --timeout --repeat --seed --cache-dir --cache-limit --out --json --verbose --quiet
--measure --worse-by --against --test --slower-than --max-compile-time --max-recompiles --max-graph-breaks
"""


@pytest.mark.parametrize("command", ["run", "check", "minimize", "explain", "bisect", "triage"])
def test_every_script_command_takes_the_same_options(command: str) -> None:
    given = {name for param in main.commands[command].params for name in param.opts}
    assert not [option for option in OPTIONS.split() if option not in given]


def test_a_page_of_help_has_groups_and_examples_and_only_what_counts_there() -> None:
    check, run, bisect = (typed(command, "--help").output for command in ("check", "run", "bisect"))
    for output in (check, run, bisect):
        assert output.index("\nThe script:\n") < output.index("\nOutput:\n") < output.index("\nExamples:\n")
        assert "-h, --help" in output
    assert "--budget" in run
    assert "--good" in run
    assert not [option for option in ("--budget", "--good", "--channel", "--git") if option in check]
    assert "--good" in bisect
    assert "--budget" not in bisect


def test_a_page_of_help_is_the_same_for_a_command_without_its_group() -> None:
    for command in ("check", "minimize"):
        context = main.commands[command].make_context(command, [], resilient_parsing=True)
        assert "-h, --help" in context.get_help()


@pytest.mark.parametrize("word", ["repro.py", "tests/test_a.py::test_step", "notes.ipynb"])
def test_a_script_in_the_place_of_a_command(word: str, folder: Path) -> None:
    assert f"type torchbisect run {word} --n 6" in line_of(typed(word, "--n", "6"), 2)


def test_an_option_of_a_command_before_it(folder: Path) -> None:
    said = line_of(typed("--torch", "2.8.0", "check", "repro.py"), 2)
    assert "--torch comes after the command: type torchbisect check --torch 2.8.0 repro.py" in said
    assert "No such option '--bogus'" in line_of(typed("--bogus", "check", "repro.py"), 2)


def test_a_word_that_is_no_number(folder: Path) -> None:
    assert "'abc' is not a valid number" in line_of(typed("check", "--timeout", "abc", "repro.py"), 2)


def test_help_as_a_command() -> None:
    done = typed("help")
    assert done.exit_code == 0
    assert "Commands:" in done.output


def test_errors_are_json_as_well_where_json_is_asked_for(folder: Path) -> None:
    for words, code in ((("check", "--json", "nowhere.py"), 2), (("check", "--json", "--nope"), 2)):
        result = typed(*words)
        assert result.exit_code == code
        assert json.loads(result.stdout)["exit_code"] == code
    assert typed("check", "nowhere.py", "--", "--json").stdout == ""


@pytest.mark.parametrize(
    ("variable", "words", "said"),
    [("bash_source", "", "_torchbisect_completion()"), ("bash_complete", "torchbisect ch", "plain,check")],
)
def test_shells_complete(variable: str, words: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TORCHBISECT_COMPLETE", variable)
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", "1")
    result = CliRunner().invoke(main, [], prog_name="torchbisect")
    assert (result.exit_code, said in result.stdout) == (0, True)


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
        (["--runtime", "runsc"], "--sandbox docker"),
        (["-v", "-q"], "-v and -q"),
        (["--out", "repro.py"], "--out repro.py"),
        (["--with", " "], "--with"),
        (["--python", "nowhere/python"], "nowhere/python"),
        (["--build-cmd", "make", "--sandbox", "docker"], "--build-cmd"),
        (["--test", " "], "--test"),
        (["--test", "true", "--slower-than", "2"], "--slower-than"),
        (["--measure", "time"], "--against BUILD"),
        (["--measure", "time", "--against", "2.1.0", "--explain"], "--explain"),
        (["--measure", "time", "--against", "2.1.0", "--emit-test"], "--emit-test"),
        (["--measure", "time", "--against", "2.1.0", "--slower-than", "2"], "--slower-than"),
        (["--worse-by", "1.3"], "--measure"),
        (["--test", "true", "--", "--epochs", "3"], "--test"),
    ],
)
def test_options_that_can_not_be_used(folder: Path, words: list[str], said: str) -> None:
    (folder / "repro.py").write_text(SCRIPT)
    assert said in line_of(typed("run", "repro.py", *words), 2)


def test_nothing_is_explained_by_a_number(folder: Path) -> None:
    (folder / "repro.py").write_text(SCRIPT)
    said = line_of(typed("explain", "repro.py", "--measure", "time", "--against", "2.1.0"), 2)
    assert "torchbisect run, check, minimize and bisect" in said


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
        "torchbisect run --torch 2.8.0 --jobs 2 --with numpy --no-bisect 'a b.py' -- --epochs 3"
    )


def test_the_repeated_command_has_another_python() -> None:
    assert "--python" not in repeat_command(Options(Path("a.py")), "a.py")
    options = Options(Path("a.py"), python="/opt/python3.10/bin/python")
    assert repeat_command(options, "a.py") == "torchbisect run --python /opt/python3.10/bin/python a.py"


def test_the_repeated_command_has_the_cache() -> None:
    options = Options(Path("a.py"), cache_dir=Path("/big disk/cache"), cache_limit=5 * 10**9)
    assert repeat_command(options, "a.py") == (
        "torchbisect run --cache-dir '/big disk/cache' --cache-limit 5000000000 a.py"
    )
    assert read_back(replace(options, script=Path("repro.py"))) == replace(options, script=Path("repro.py"))


TEXTS = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=8).filter(str.strip)


PACKAGES = st.sampled_from(["numpy", "einops>=0.8", 'scipy[a]<2,>1; python_version >= "3.9"'])
AMOUNTS = st.integers(1, 9999)
BUILDS = st.sampled_from(["installed", "2.8.0", "2.7", "2.8.0+cu128", "2.15.0.dev20260822", "2026-02-12"])


def read_back(options: Options) -> Options:
    """Return the options of the repeated command."""
    words = shlex.split(repeat_command(options, str(options.script) if options.script else None))
    context = main.commands["run"].make_context("run", words[2:], resilient_parsing=False)
    return options_from("run", context.params)


SECONDS = st.none() | st.floats(1e-6, 30 * 86400)
RATIOS = st.none() | st.floats(1e-6, 1e9)
COUNTS = st.none() | st.integers(0, 99)


@given(
    torch=st.none() | BUILDS,
    budget=st.none() | AMOUNTS.map(lambda seconds: Budget(float(seconds))) | AMOUNTS.map(lambda n: Budget(questions=n)),
    save_trajectory=st.booleans(),
    repeat=st.integers(1, 9),
    seed=st.integers(-(2**63), 2**64 - 1),
    packages=st.lists(PACKAGES, max_size=3).map(tuple),
    allow_sdists=st.booleans(),
    arguments=st.lists(TEXTS, max_size=3).map(tuple),
    slower_than=RATIOS,
    max_compile_time=SECONDS,
    max_recompiles=COUNTS,
    max_graph_breaks=COUNTS,
    timeout=SECONDS,
)
def test_the_repeated_command_reads_back_as_the_same_options(**given: Any) -> None:
    options = Options(Path("repro.py"), **given)
    assert read_back(options) == options


@given(test=TEXTS, script=st.none() | st.just(Path("repro.py")), timeout=SECONDS)
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


@pytest.mark.parametrize(
    "package", ["--index-url=https://evil.example", "-e .", "x @ file:///etc/passwd", " -r x", "a\nb"]
)
@pytest.mark.parametrize("command", ["run", "check", "triage"])
def test_a_package_that_is_none_is_wrong_usage(folder: Path, command: str, package: str) -> None:
    (folder / "repro.py").write_text(SCRIPT)
    line = line_of(typed(command, "repro.py", "--torch", "2.8.0", f"--with={package}"), 2)
    assert "--with" in line
    assert "torch 2.8.0" not in line


SECRETS = ("hunter2seven", "ghp_" + "a1B2" * 9)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "repro.py", "--git", "https://ann:hunter2seven@host.example/x", "--torch", SECRETS[1]),
        ("run", f"https://{SECRETS[1]}@host.example/repro.py"),
        ("run", "repro.py", "--timeout", "https://ann:hunter2seven@host.example"),
        ("run", "repro.py", "--jobs", SECRETS[1]),
        ("run", "repro.py", f"--{SECRETS[1]}"),
        ("issue", f"https://ann:hunter2seven@host.example/{SECRETS[1]}"),
        ("report", f"folder-{SECRETS[1]}"),
    ],
)
def test_no_error_shows_a_secret(folder: Path, words: tuple[str, ...]) -> None:
    done = typed(*words)
    assert done.exit_code == 2
    assert not [secret for secret in SECRETS if secret in done.output]


def test_the_command_to_repeat_a_run_has_no_password() -> None:
    options = Options(
        Path("a.py"),
        index_url="https://ann:p'w@host.example/simple",
        extra_index_urls=("https://hunter2seven@other.example/simple?a=1",),
        git="git+https://x:hunter2seven@git.example/x",
        packages=("x @ https://ann:hunter2seven@host.example/x-1-py3-none-any.whl",),
    )
    assert shlex.split(repeat_command(options, "a.py"))[2:-1] == [
        *("--index-url", "https://host.example/simple", "--git", "git+https://git.example/x"),
        *("--extra-index-url", "https://other.example/simple?a=1"),
        *("--with", "x @ https://host.example/x-1-py3-none-any.whl"),
    ]


def test_no_line_of_progress_shows_a_secret() -> None:
    stream = io.StringIO()
    display = Display(1, stream)
    with display.stage(f"Observe {SECRETS[1]}"):
        for show in (display.line, display.result, display.detail, display.warn, display.error, display.status):
            show(f"cloning https://ann:hunter2seven@host.example/x with {SECRETS[1]}")
    assert "cloning https://host.example/x with ****" in stream.getvalue()
    assert not [secret for secret in SECRETS if secret in stream.getvalue()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "https://example.org/a/repro.py"], "https://example.org/a/repro.py is no issue's address"),
        (["rnu", "repro.py"], "Did you mean 'run'? See python -m torchbisect --help"),
    ],
)
def test_what_a_new_user_types(words: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, "-m", "torchbisect", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_help_has_no_ranges_that_nobody_reaches() -> None:
    shown = CliRunner().invoke(main, ["check", "--help"]).output
    assert not re.search(r"\d{7}", shown)
    assert "1<=x<=1024" in shown
