"""A triage beside a ledger: an issue with a known script costs nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from running import Tool

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.triage.database import Database
from torchbisect.triage.ledger.bug import AskedScript, KnownBug
from torchbisect.triage.ledger.state import Edge, Standing, State
from torchbisect.triage.ledger.store import Ledger, WatchedBug

pytestmark = pytest.mark.slow

SOURCE = "import torch\nprint(torch.ones(2))\n"
EDGE = Edge(BoundaryKind.FIX, "2.13.0", "2.14.0", True, True)
FIXED = Standing(State.FIXED, "agrees", "2.14.0", "2.13.0", "2.14.0", EDGE)


def put(folder: Path, standing: Standing) -> None:
    folder.mkdir(exist_ok=True)
    bug = KnownBug("a/b#1", scripts=(AskedScript("original", SOURCE, {"kind": "values"}, {}),))
    with Database(folder / "triage.sqlite") as database:
        Ledger(database).put_bugs([WatchedBug(bug, standing)])


def test_an_issue_with_a_known_script_is_not_run(tool: Tool) -> None:
    out = tool.folder / "torchbisect-triage"
    put(out, FIXED)
    scripts = tool.folder / "scripts"
    scripts.mkdir()
    (scripts / "again.py").write_text(SOURCE + "# sent once more\n")
    done = tool.run("triage", "--json", "scripts")
    assert done.returncode == 0, done.stderr
    assert "1 of them new, 0 to run, 1 known to the ledger" in done.stderr
    (row,) = json.loads(done.stdout)["issues"]
    assert (row["state"], row["known"]) == ("known", "same as a/b#1, fixed in 2.14.0")
    assert not list(tool.folder.glob("torchbisect-triage/runs/*"))
    # The ledger's word is always that of today.
    back = replace(FIXED, state=State.REGRESSED, edge=Edge(BoundaryKind.REGRESSION, "2.14.0", "2.15.0", True, True))
    put(out, back)
    (row,) = json.loads(tool.run("triage", "--json", "scripts").stdout)["issues"]
    assert row["known"] == "same as a/b#1, regressed: back in 2.15.0"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "there is no such folder"),
        (("empty",), "there is no report with a mismatch"),
        (("--channel", "commit", "empty"), "follows one channel"),
        (("--executor", "ray", "empty"), "--address"),
        (("--add", "empty", "empty"), "no report in"),
    ],
)
def test_what_cannot_be_watched_is_said_in_one_line(tool: Tool, words: tuple[str, ...], said: str) -> None:
    (tool.folder / "empty").mkdir()
    done = tool.run("watch", *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
