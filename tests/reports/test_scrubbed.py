"""Nothing that a report shows holds a secret or a path of this machine, and the script's file stays as it was run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from sample_reports import values

from torchbisect.reports.files import load, write
from torchbisect.reports.model.report import Logs, Report, UnfinishedPart
from torchbisect.reports.scrubbed import scrubbed

TOKEN = "ghp_" + "a1B2" * 9
SOURCE = f"import torch\nTOKEN = '{TOKEN}'\nDATA = '/home/ann/data.pt'\nassert torch.compile(torch.sin)\n"
SECRETS = (TOKEN, "hunter2seven", "xn-variable-9", "/home/ann")


@pytest.fixture
def telling(whole: Report, monkeypatch: pytest.MonkeyPatch) -> Report:
    """A report with a secret in every kind of text."""
    monkeypatch.setenv("SOME_API_KEY", "xn-variable-9")
    assert whole.minimal is not None
    assert whole.original is not None
    return replace(
        whole,
        command="torchbisect run repro.py --index-url https://ann:hunter2seven@host.example/simple",
        minimal=replace(whole.minimal, source=SOURCE),
        original=replace(whole.original, source=SOURCE),
        arguments=("--key", "xn-variable-9"),
        unfinished=(UnfinishedPart("bisect", f"git failed at https://{TOKEN}@git.example/x in /home/ann/.cache/y"),),
        logs=Logs(f"sent {TOKEN}", "File '/home/ann/x.py', xn-variable-9"),
        notices=(f"a line with {TOKEN}",),
    )


def test_no_file_but_the_script_holds_a_secret(telling: Report, tmp_path: Path) -> None:
    for path in write(telling, tmp_path):
        if path.name != "minimal.py":
            text = path.read_text()
            assert not [secret for secret in SECRETS if secret in text], path.name
    assert (tmp_path / "minimal.py").read_text() == SOURCE
    shown = load(tmp_path)
    assert shown.command == "torchbisect run repro.py --index-url https://host.example/simple"
    assert shown.minimal is not None
    assert shown.minimal.source == SOURCE.replace(TOKEN, "****").replace("/home/ann", "~")
    assert sum("in this report has ****" in notice for notice in shown.notices) == 2


def test_rendering_again_leaves_the_script_as_it_is(telling: Report, tmp_path: Path) -> None:
    write(telling, tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    write(load(tmp_path), tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_a_report_without_secrets_has_no_notice(whole: Report) -> None:
    assert scrubbed(whole).notices == whole.notices


@given(values(Report))
def test_a_second_pass_changes_nothing(report: Report) -> None:
    once = scrubbed(report)
    assert scrubbed(once).to_json() == once.to_json()


def test_an_argument_of_the_script_that_is_a_secret(whole: Report) -> None:
    """``torchbisect report`` shows a report in a process that did not get the arguments itself."""
    logs = Logs("signing in with letmein-please", "")
    shown = scrubbed(replace(whole, arguments=("--db-password", "letmein-please"), logs=logs))
    assert shown.arguments == ("--db-password", "****")
    assert shown.logs is not None
    assert "letmein" not in shown.logs.eager
