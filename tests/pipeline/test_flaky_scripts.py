"""Scripts that do not fail every time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from answer_table import MISMATCH, SIGNATURE, Table
from table_run import Run

from torchbisect.core.errors import Exit
from torchbisect.core.verdict import MismatchKind

RELEASES = {"2.5.0": [], "2.6.0": [], "2.7.0": ["one"], "2.8.0": ["one"]}
TWO_OF_THREE = (True, False, True)


def test_a_flaky_script_is_bisected_by_single_runs(run: Run) -> None:
    result = run(Table(RELEASES, pattern=TWO_OF_THREE), find="regression")
    assert result.code == Exit.FLAKY
    assert result.stages == ["Observe", "Localize", "Bisect", "Confirm", "Report"]
    report = result.report
    assert report["verdict"] == "flaky"
    assert (report["mismatch"]["shown"], report["mismatch"]["runs"]) == (2, 3)
    regression = report["bisect"]["regression"]
    assert (regression["last_good"], regression["first_bad"]) == ("2.6.0", "2.7.0")
    assert regression["confidence"] > 0.9
    assert report["minimal"] is None


def test_a_flaky_script_is_not_shrunk(run: Run) -> None:
    result = run(Table(RELEASES, pattern=TWO_OF_THREE), command="minimize")
    assert result.code == Exit.FLAKY
    assert result.stages == ["Observe", "Localize"]


def test_more_runs_find_a_mismatch_that_the_first_one_did_not_show(run: Run) -> None:
    """The first observation shows none; with ``--repeat`` there are more, each in a fresh process."""
    table = Table({**RELEASES, "2.8.0": []}, pattern=(False, True))
    shown = {"run": False}

    def shows(build: object, source: str, settings: object = None) -> bool:
        return shown["run"]

    table.shows = shows  # type: ignore[method-assign]
    table.on_question = lambda asked: shown.update(run=asked.what == "run")
    result = run(table, repeat=4, command="check")
    assert result.code == Exit.FLAKY
    assert "run 3 showed a mismatch and 2 before it did not" in result.report["reason"]


@pytest.mark.parametrize("kind", [MismatchKind.RAISES, MismatchKind.HANG])
def test_a_mismatch_that_a_fresh_process_does_not_show_is_flaky(run: Run, kind: MismatchKind) -> None:
    mismatch = replace(MISMATCH, kind=kind, signature=replace(SIGNATURE, kind=kind))
    result = run(Table(RELEASES, fresh_agrees=False, mismatch=mismatch), command="check")
    assert result.code == Exit.FLAKY
    assert "a fresh process does not show it" in result.report["reason"]
