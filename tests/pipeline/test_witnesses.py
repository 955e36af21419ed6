"""The witness loop: a shrunk script keeps the history of the original, or the original is bisected."""

from __future__ import annotations

from answer_table import Table
from table_run import Run

from torchbisect.core.errors import Exit


def test_a_shrunk_script_with_another_history_is_shrunk_again(run: Run) -> None:
    """On 2.7.0 the script fails because of its second half alone, and shrinking on 2.8.0 has kept the first."""
    result = run(Table({"2.6.0": [], "2.7.0": ["two"], "2.8.0": ["one", "two"]}))
    assert result.code == Exit.FINISHED
    assert result.stages.count("Bisect") == 2
    assert "Minimize again, keeping its history" in result.stages
    assert result.minimal == "print('two')\n"
    regression = result.report["bisect"]["regression"]
    assert (regression["last_good"], regression["first_bad"]) == ("2.6.0", "2.7.0")


def test_the_witness_is_asked_about_every_candidate_that_shows_the_mismatch(run: Run) -> None:
    result = run(Table({"2.6.0": [], "2.7.0": ["two"], "2.8.0": ["one", "two"]}))
    again = result.said.index("Minimize again")
    assert "another-history none where the original is bad" in result.said[again:]


def test_a_history_that_no_shrunk_script_keeps_is_that_of_the_original(run: Run) -> None:
    """Each half fails on a build of its own, so every witness finds another half and the loop has to end."""
    releases = {
        "2.2.0": [],
        "2.3.0": ["four"],
        "2.4.0": ["three"],
        "2.5.0": ["two"],
        "2.8.0": ["one", "two", "three", "four"],
    }
    script = "\n".join(f"print('{word}')" for word in ("one", "two", "three", "four")) + "\n"
    result = run(Table(releases), script=script)
    assert result.code in (Exit.FINISHED, Exit.PARTIAL)
    regression = result.report["bisect"]["regression"]
    assert (regression["last_good"], regression["first_bad"]) == ("2.2.0", "2.3.0")


def test_the_journal_answers_for_a_shrunk_script_that_comes_back(run: Run) -> None:
    table = Table({"2.6.0": [], "2.7.0": ["two"], "2.8.0": ["one", "two"]})
    first = run(table)
    again = run(table)
    assert again.code == first.code
    assert again.minimal == first.minimal
    assert not [asked for asked in again.asked if asked.what in ("ask", "confirm", "observe", "again")]
