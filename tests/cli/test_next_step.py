"""The line that ends each command about a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbisect.cli.commands import main
from torchbisect.cli.next_step import next_step
from torchbisect.cli.script_command import refused_options
from torchbisect.pipeline.options import Options
from torchbisect.reports.model.report import Report

SCRIPT = Path("my repro.py")


def step(options: Options, verdict: str = "mismatch", state: str = "complete") -> str:
    return next_step(options, Report(state, verdict, None, ""))  # type: ignore[arg-type]


def test_after_check_come_minimize_and_bisect_with_the_same_options() -> None:
    options = Options(SCRIPT, ("--n", "6"), torch="2.8.0", command="check")
    assert step(options) == (
        "torchbisect minimize --torch 2.8.0 'my repro.py' -- --n 6 shrinks it; "
        "torchbisect bisect --torch 2.8.0 'my repro.py' -- --n 6 finds where it broke and where it was fixed"
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (Options(SCRIPT), ()),
        (Options(SCRIPT, bisect=False), ("bisect",)),
        (Options(SCRIPT, command="minimize"), ("bisect",)),
        (Options(SCRIPT, command="bisect"), ("minimize",)),
        (Options(Path("-"), command="check"), ()),
        (Options(None, test="make", command="bisect"), ()),
    ],
)
def test_only_what_was_not_done_is_named(options: Options, named: tuple[str, ...]) -> None:
    text = step(options)
    assert [name for name in ("minimize", "bisect", "check") if f"torchbisect {name}" in text] == list(named)
    assert ("report.md" in text) == (options.command != "check")


def test_graphs_without_a_mismatch_may_need_the_values_of_the_program() -> None:
    report = Report("complete", "none", None, "")  # type: ignore[arg-type]
    assert "inputs are drawn" in next_step(Options(Path("trace"), command="check"), report, has_graphs=True)
    assert "--torch" in next_step(Options(SCRIPT, command="check"), report)


REFUSALS = {
    "argparse": "usage: a.py [-h] [--lr LR]\na.py: error: unrecognized arguments: --out X --jobs=2",
    "click": "Usage: a.py [OPTIONS]\nTry 'a.py --help' for help.\n\nError: No such option: --out",
    "typer": "╭─ Error ───╮\n│ No such option: --out │\n╰───────────╯",
    "absl": "FATAL Flags parsing error: Unknown command line flag 'out'",
    "fire": "ERROR: Could not consume arg: --out",
    "getopt": "getopt.GetoptError: option --out not recognized",
    "optparse": "a.py: error: no such option: --out",
}


@pytest.mark.parametrize("said", REFUSALS.values(), ids=REFUSALS)
def test_options_that_the_script_refuses_are_named(said: str) -> None:
    arguments = ("--out", "X", "--jobs=2", "--own")
    refused = refused_options(main.commands["check"], arguments, said)
    assert refused == (["--out", "--jobs"] if "--jobs" in said else ["--out"])
    hint = next_step(Options(SCRIPT), Report("complete", "untestable", None, ""), refused)
    assert hint.startswith("--out")
    assert hint.endswith("before my repro.py")


@pytest.mark.parametrize(
    "said",
    [
        "usage: a.py [--out OUT] --data DATA\na.py: error: the following arguments are required: --data",
        "a.py: error: unrecognized arguments: --own",
        "RuntimeError: unknown layout",
        "",
    ],
)
def test_options_that_the_script_takes_are_not_named(said: str) -> None:
    assert refused_options(main.commands["check"], ("--out", "X", "--own"), said) == []


def test_a_run_without_a_mismatch() -> None:
    options = Options(SCRIPT)
    assert "--torch" in step(options, "none")
    assert "--repeat" in step(options, "flaky")
    assert step(options, "untestable") == ""
    assert step(options, state="interrupted") == ""
    assert "same command" in step(options, state="partial")


def test_a_number_is_shrunk_and_searched_for_too() -> None:
    options = Options(SCRIPT, torch="2.8.0", measure="time", against="2.7.0", command="check")
    words = "--torch 2.8.0 --measure time --against 2.7.0 'my repro.py'"
    assert step(options) == (
        f"torchbisect minimize {words} shrinks it; torchbisect bisect {words} finds where it became worse"
    )
