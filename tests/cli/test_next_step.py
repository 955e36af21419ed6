"""The line that ends each command about a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbisect.cli.next_step import next_step
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


def test_a_run_without_a_mismatch() -> None:
    options = Options(SCRIPT)
    assert "--torch" in step(options, "none")
    assert "--repeat" in step(options, "flaky")
    assert step(options, "untestable") == ""
    assert step(options, state="interrupted") == ""
    assert "same command" in step(options, state="partial")
