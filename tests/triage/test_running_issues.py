"""The display of the issues that a triage is running."""

from __future__ import annotations

from pathlib import Path

from torchbisect.pipeline.options import Options
from torchbisect.triage.jobs import IssueJob, IssueTask
from torchbisect.triage.running_issues import RunningIssues


def task(name: str, folder: Path) -> IssueTask:
    folder.mkdir()
    return IssueTask.of(IssueJob(name, source="pass"), Options(folder / "repro.py"), folder, stated=False)


def test_each_issue_at_work_is_shown_with_the_last_line_of_its_log(tmp_path: Path) -> None:
    running = RunningIssues(3)
    assert running.text() == "0 of 3 done"
    first, second = task("a/b#1", tmp_path / "1"), task("a/b#2", tmp_path / "2")
    running.start(first)
    running.start(second)
    log = tmp_path / "1" / "log.txt"
    log.write_bytes(b"Observe\n" * 1000 + b"  \xe2\x80\xa6 Minimize: best so far 120 bytes (12 s)\n")
    assert running.text() == "0 of 3 done; a/b#1 (Minimize: best so far 120 bytes (12 s)); a/b#2"
    log.write_bytes(b"Minimize\n  ! \x1b[2J\xff" + b"x" * 5000)
    assert "\x1b" not in running.text()
    assert len(running.text()) < 300
    running.end("a/b#1")
    assert running.text() == "1 of 3 done; a/b#2"
