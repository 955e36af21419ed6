"""The comment of a watched issue: one an issue, edited, with the report that was there and a line of the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from comment_hub import Handler, Hub
from loopback import listening

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.core.errors import InputError
from torchbisect.reports import files
from torchbisect.reports.model.report import Report
from torchbisect.reports.render.markdown import FIRST_LINE
from torchbisect.triage.database import Database
from torchbisect.triage.github import ACTIONS_BOT
from torchbisect.triage.ledger.bug import KnownBug
from torchbisect.triage.ledger.comments import comment_changes
from torchbisect.triage.ledger.state import Edge, Standing, State
from torchbisect.triage.ledger.store import Change, Ledger, WatchedBug

NAME = "pytorch/pytorch#12"
FIXED = Standing(
    State.FIXED, "agrees", "2.14.0", "2.13.0", "2.14.0", Edge(BoundaryKind.FIX, "2.13.0", "2.14.0", True, True)
)
BACK = replace(
    FIXED, state=State.REGRESSED, newest="2.15.0", edge=Edge(BoundaryKind.REGRESSION, "2.14.0", "2.15.0", True, True)
)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    kept = Hub()
    with listening(type("Bound", (Handler,), {"hub": kept})) as kept.base:
        monkeypatch.setenv("GITHUB_API_URL", kept.base)
        monkeypatch.setenv("GH_TOKEN", "secret")
        yield kept


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Database(tmp_path / "t.sqlite") as database:
        yield Ledger(database)


def change(ledger: Ledger, name: str, standing: Standing) -> None:
    words = Change(1, "2026-11-24T00:00:00+00:00", name, standing.newest, "reproduces", str(standing.state), "")
    ledger.put_standing(WatchedBug(KnownBug(name), standing), words)


def test_each_change_edits_the_one_comment_and_keeps_the_report(
    hub: Hub, ledger: Ledger, whole: Report, tmp_path: Path
) -> None:
    files.write(whole, tmp_path / "run")
    hub.say(ACTIONS_BOT, f"{FIRST_LINE}\nthe report of the first run")
    change(ledger, NAME, FIXED)
    change(ledger, "runs/local.py", FIXED)
    assert comment_changes(ledger, {NAME: tmp_path / "run"}, pytest.fail) == 1
    (comment,) = hub.comments
    assert "**Watched by torchbisect: fixed in 2.14.0.**" in comment["body"]
    assert comment["body"].startswith(FIRST_LINE)
    assert "### Versions" in comment["body"]
    before = len(hub.requests)
    assert comment_changes(ledger, {}, pytest.fail) == 0
    assert len(hub.requests) == before, "what was said is said again"
    change(ledger, NAME, BACK)
    assert comment_changes(ledger, {NAME: tmp_path / "run"}, pytest.fail) == 1
    (comment,) = hub.comments
    assert "**Watched by torchbisect: regressed: back in 2.15.0.**" in comment["body"]


def test_a_comment_that_could_not_be_written_is_written_the_next_time(hub: Hub, ledger: Ledger) -> None:
    change(ledger, NAME, FIXED)
    said: list[str] = []
    hub.errors.append((403, {}, "no"))
    assert comment_changes(ledger, {}, said.append) == 0
    assert NAME in said[-1]
    assert comment_changes(ledger, {}, said.append) == 1
    assert "fixed in 2.14.0" in hub.comments[0]["body"]


def test_no_comment_without_a_token(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GH_TOKEN", raising=False)
    assert comment_changes(ledger, {}, pytest.fail) == 0
    change(ledger, NAME, FIXED)
    with pytest.raises(InputError, match="GH_TOKEN"):
        comment_changes(ledger, {}, pytest.fail)
