"""The triage of many issues: killed, continued, and complete in the end."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections import defaultdict
from pathlib import Path

import psutil
import pytest
from issue_flood import as_lines, flood
from running import Tool

from torchbisect.triage.database import Database
from torchbisect.triage.issue_row import IssueRow

pytestmark = [pytest.mark.torch, pytest.mark.timeout(900)]

OUT = "torchbisect-triage"
QUICK = ("--no-bisect", "--no-minimize")


def rows(tool: Tool) -> dict[str, IssueRow]:
    with Database(tool.folder / OUT / "triage.sqlite") as database:
        return {row.name: row for row in database.rows()}


def workers(tool: Tool) -> list[int]:
    """Return the ids of the worker processes of triages in the folder of this test."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if "triage.worker" in words and str(tool.folder) in words:
            found.append(process.info["pid"])
    return found


@pytest.mark.long
def test_two_hundred_issues_survive_a_kill(tool: Tool) -> None:
    recorded = flood()
    (tool.folder / "issues.jsonl").write_text(as_lines(recorded))
    command = ("triage", str(tool.folder / "issues.jsonl"), *QUICK, "--workers", "2", "--out", str(tool.folder / OUT))

    runnable = sum(one.state != "nothing-to-run" for one in recorded)

    tool.stopped(*command, at=lambda line: "[20/" in line, by=signal.SIGKILL)
    before = {name: row for name, row in rows(tool).items() if row.finished}
    ran = {name for name, row in before.items() if row.state != "nothing-to-run"}
    assert 20 <= len(ran) < runnable
    until = time.monotonic() + 30
    while workers(tool) and time.monotonic() < until:
        time.sleep(0.1)
    assert not workers(tool), "a worker outlives its parent"

    second = tool.run(*command)
    assert second.returncode == 0, second.stderr
    assert f"200 issues, {runnable - len(ran)} of them new, {runnable - len(ran)} to run" in second.stderr
    after = rows(tool)
    assert {name: after[name] for name in before} == before, "a known result was computed again"
    assert {name: row.state for name, row in after.items()} == {one.name: one.state for one in recorded}

    same: dict[str, list[str]] = defaultdict(list)
    for one in recorded:
        if one.bug:
            same[one.bug].append(one.name)
    third = tool.run(*command, "--json")
    found = json.loads(third.stdout)
    assert sorted(group["names"] for group in found["groups"]) == sorted(
        names for names in same.values() if len(names) > 1
    )
    assert "0 of them new, 0 to run" in third.stderr
    assert rows(tool) == after
    for row in after.values():
        assert bool(row.report) == (row.state != "nothing-to-run")
        assert not row.report or (tool.folder / OUT / row.report / "report.html").is_file()
    page = (tool.folder / OUT / "triage.html").read_text()
    assert all(row.name in page for row in after.values())


DIES = """
import os, signal, torch


def backend(graph, inputs):
    # Up from the run to the agent, and from there to the worker.
    agent = os.getppid()
    with open(f"/proc/{agent}/stat") as file:
        worker = int(file.read().rpartition(")")[2].split()[1])
    os.kill(worker, signal.SIGKILL)
    return graph.forward


print(torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2)))
"""
WORKS = "import torch\nprint(torch.compile(lambda x: x.sin(), backend='eager')(torch.ones(2)))\n"


@pytest.mark.long
def test_a_script_that_kills_its_worker_stops_no_other(tool: Tool) -> None:
    scripts = tool.folder / "scripts"
    scripts.mkdir()
    (scripts / "a_dies.py").write_text(DIES)
    (scripts / "b_works.py").write_text(WORKS)
    (scripts / "helper.py").write_text("FACTOR = 2\n")
    (scripts / "c_imports.py").write_text("from helper import FACTOR\n" + WORKS)
    done = tool.run("triage", "scripts", *QUICK)
    assert done.returncode == 3, done.stderr
    found = rows(tool)
    assert {name: row.state for name, row in found.items()} == {
        "a_dies.py": "failed",
        "b_works.py": "none",
        "c_imports.py": "none",
        "helper.py": "untestable",
    }
    assert "died 2 times" in found["a_dies.py"].reason
    (scripts / "a_dies.py").write_text(WORKS + "\n")
    done = tool.run("triage", "scripts", *QUICK)
    assert done.returncode == 0
    assert "1 of them new, 1 to run" in done.stderr
    assert rows(tool)["a_dies.py"].state == "none"


def test_a_database_of_another_program_or_version_is_rejected(tool: Tool, tmp_path: Path) -> None:
    (tool.folder / "x.py").write_text(WORKS)
    out = tool.folder / OUT
    out.mkdir()
    (out / "triage.sqlite").write_text("no database at all, whatever it is called\n" * 40)
    done = tool.run("triage", ".", *QUICK)
    assert done.returncode == 2
    assert "name another --out" in done.stderr
    (out / "triage.sqlite").unlink()
    with sqlite3.connect(out / "triage.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "newer torchbisect" in tool.run("triage", ".", *QUICK).stderr
