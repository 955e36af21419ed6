"""Interruption at any question: what is on disk then, and the same command afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from answer_table import Asked, Table
from table_run import Run, run_in

from torchbisect.core.errors import Exit

RELEASES = {"2.6.0": [], "2.7.0": ["one"], "2.8.0": ["one"], "2.9.0": []}
ANSWERED = ("ask", "confirm", "observe", "again")


def interrupting(table: Table, at: int) -> None:
    """Have Ctrl-C pressed at the question of this number."""

    def interrupt(asked: Asked) -> None:
        if len(table.asked) == at:
            raise KeyboardInterrupt

    table.on_question = interrupt


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a run that nobody interrupts."""
    return run_in(tmp_path_factory.mktemp("undisturbed"), Table(RELEASES)).report


@pytest.mark.parametrize("at", [0, 3, 10, 17, 22, 34])
def test_the_same_command_continues_and_asks_nothing_twice(run: Run, undisturbed: dict[str, Any], at: int) -> None:
    table = Table(RELEASES)
    interrupting(table, at)
    stopped = run(table)
    assert stopped.code == Exit.INTERRUPTED
    assert stopped.report["state"] == "interrupted"
    table.on_question = lambda asked: None
    done = run(table)
    assert done.code == Exit.FINISHED
    for part in ("verdict", "mismatch", "localization"):
        assert done.report[part] == undisturbed[part]
    assert done.report["minimal"]["source"] == undisturbed["minimal"]["source"]
    assert _boundaries(done.report) == _boundaries(undisturbed)
    asked = [one for one in table.asked if one.what in ANSWERED]
    assert len(set(asked)) == len(asked)


def _boundaries(report: dict[str, Any]) -> list[str]:
    return [report["bisect"][name]["words"] for name in ("regression", "fix")]


def test_what_was_found_before_ctrl_c_is_on_disk(run: Run) -> None:
    def interrupt(asked: Asked) -> None:
        if asked.build == "2.7.0":
            raise KeyboardInterrupt

    result = run(Table(RELEASES, on_question=interrupt))
    assert result.code == Exit.INTERRUPTED
    assert "give the same command again" in result.said
    report = result.report
    assert report["localization"]["backend"] == "eager"
    assert report["minimal"]["source"] == result.minimal == "print('one')\n"
    assert report["bisect"] is None
    assert "print('one')" in (result.out / "report.md").read_text()
