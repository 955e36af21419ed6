"""``report.html`` in a real browser, checked by axe-core. Skipped without Chromium and npm."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchbisect.reports.model.report import Report
from torchbisect.reports.render.html import render
from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.issue_table import html_page as triage_page
from torchbisect.triage.ledger.bug import AskedScript, KnownBug
from torchbisect.triage.ledger.page import History, bug_page, grid_page
from torchbisect.triage.ledger.state import Control, Seen, Sighting, Standing, State, step
from torchbisect.triage.ledger.store import AskedBuild, Change, Run, StoredAnswer, WatchedBug

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update")
RUN = """
axe.run().then(result => {
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify({
    passes: result.passes.length,
    violations: result.violations.map(v => [v.id, v.nodes.map(n => n.html)]),
    wide: document.documentElement.scrollWidth > innerWidth,
  });
  document.body.append(found);
});
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from the registry that npm is configured for."""
    npm = shutil.which("npm")
    if not CHROMIUM or not npm:
        pytest.skip("needs chromium and npm")
    place = tmp_path_factory.mktemp("axe")
    done = subprocess.run([npm, "pack", "axe-core@4"], cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm can't fetch axe-core: {done.stderr[-200:]}")
    shutil.unpack_archive(next(place.glob("*.tgz")), place)
    return (place / "package" / "axe.min.js").read_text(encoding="utf-8")


def look(page: str, axe: str, place: Path, *flags: str, then: str = RUN) -> dict[str, Any]:
    """Load the page with axe in Chromium, and return the JSON that the script ``then`` writes to ``#found``."""
    page = re.sub(r"; script-src [^\"]*", "", page)
    page = page.replace("style-src 'unsafe-inline'", "style-src 'unsafe-inline'; script-src 'unsafe-inline'")
    page = page.replace("</body>", f"<script>{axe}</script><script>{then}</script></body>")
    (place / "page.html").write_text(page, encoding="utf-8")
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    command = [str(CHROMIUM), "--headless", "--disable-gpu", "--disable-sync", *QUIET, *root, *flags]
    command += [f"--user-data-dir={place / 'profile'}", "--virtual-time-budget=20000", "--dump-dom"]
    done = subprocess.run(
        [*command, (place / "page.html").as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-500:]
    result: dict[str, Any] = json.loads(html.unescape(found.group(1)))
    return result


@pytest.mark.parametrize(
    "flags",
    [(), ("--blink-settings=preferredColorScheme=0",), ("--window-size=500,900",)],
    ids=["light", "dark", "narrow"],
)
def test_axe_finds_nothing(whole: Report, axe: str, tmp_path: Path, flags: tuple[str, ...]) -> None:
    assert whole.mismatch is not None
    details = {
        "count": 12,
        "numel": 64,
        "largest": 0.5,
        "index": [3, 2],
        "error": 0.25,
        "bound": 1e-6,
        "histogram": {"edges": [0, 1e-3, 0.1, 0.5], "counts": [3, 1, 8]},
        "map": [[0, 0.5], [1, 0]],
    }
    report = replace(whole, mismatch=replace(whole.mismatch, details=details))
    found = look(render(report), axe, tmp_path, *flags)
    assert found["violations"] == []
    assert found["passes"] > 20
    assert not found["wide"], "the page itself must not scroll sideways"


ISSUES = (
    IssueRow(
        "a/b#1", state="mismatch", summary="wrong sum", signature="s", report="runs/1", seconds=9.0, first_bad="2.9.0"
    ),
    IssueRow("a/b#2", state="none", title="is it slow?", report="runs/2", seconds=1.5),
    IssueRow("a/b#3", state="nothing-to-run", reason="no script", url="https://github.com/a/b/issues/3"),
    IssueRow(
        "a/b#4", state="mismatch", summary="wrong sum", signature="s", report="runs/4", seconds=40.0, first_bad="2.9.0"
    ),
)
USE = """
{
const rows = () => [...document.querySelectorAll("#issues tbody tr")];
const shown = () => rows().filter(row => !row.hidden).map(row => row.cells[0].textContent.slice(0, 5));
const words = document.getElementById("words"), state = document.getElementById("state");
const found = {all: shown()};
words.value = "SUM wrong"; words.dispatchEvent(new Event("input")); found.words = shown();
found.count = document.getElementById("count").textContent;
words.value = ""; state.value = "none"; state.dispatchEvent(new Event("change")); found.state = shown();
state.value = ""; state.dispatchEvent(new Event("change"));
const headings = [...document.querySelectorAll("#issues th button")];
headings.at(-1).click(); found.up = shown();
headings.at(-1).click(); found.down = shown();
found.sorted = headings.at(-1).parentElement.getAttribute("aria-sort");
found.reports = [...document.querySelectorAll("#issues td:first-child a")].map(a => a.getAttribute("href"));
const pre = document.createElement("pre");
pre.id = "found"; pre.textContent = JSON.stringify(found); document.body.append(pre);
}
"""


@pytest.mark.parametrize("flags", [(), ("--blink-settings=preferredColorScheme=0",)], ids=["light", "dark"])
def test_axe_finds_nothing_on_the_triage_page(axe: str, tmp_path: Path, flags: tuple[str, ...]) -> None:
    found = look(triage_page(ISSUES), axe, tmp_path, *flags)
    assert found["violations"] == []
    assert found["passes"] > 20
    assert not found["wide"]


def test_the_triage_page_sorts_and_filters(axe: str, tmp_path: Path) -> None:
    found = look(triage_page(ISSUES), "", tmp_path, then=USE)
    assert found["all"] == ["a/b#1", "a/b#2", "a/b#3", "a/b#4"]
    assert found["words"] == ["a/b#1", "a/b#4"]
    assert found["count"] == "2 of 4 shown"
    assert found["state"] == ["a/b#2"]
    assert found["up"] == ["a/b#3", "a/b#2", "a/b#1", "a/b#4"]
    assert found["down"] == ["a/b#4", "a/b#1", "a/b#2", "a/b#3"]
    assert found["sorted"] == "descending"
    assert set(found["reports"]) >= {"runs/1/report.html", "runs/2/report.html", "runs/4/report.html"}


def watched() -> History:
    """A ledger with three bugs on three builds, of which one is broken."""
    rows = {"a/b#1": (Seen.SAME, Seen.NONE), "a/b#2": (Seen.SAME, Seen.SAME), "a/b#3": (Seen.OTHER, Seen.UNTESTABLE)}
    bugs, answers = [], []
    for name, row in rows.items():
        standing = Standing(State.REPRODUCES, "wrong sum", "2.8.0", "2.8.0")
        for build, seen in zip(("2.9.0", "2.10.0"), row):
            sighting = Sighting(build, "2026-11-24", seen, control=Control.SHOWN, reason="what was seen")
            standing = step(standing, sighting)
            answers.append(StoredAnswer(name, "k", sighting))
        script = AskedScript("minimal", "print(1)\n" * 30, {}, {})
        url = "https://github.com/a/b/issues/1"
        bugs.append(
            WatchedBug(KnownBug(name, "title", url, "wrong sum", scripts=(script,)), standing, "2026-11-01", "2.8.0")
        )
    builds = tuple(
        AskedBuild(name, "release", "2026-11-24", name != "2.11.0", "no compiler") for name in ("2.9.0", "2.11.0")
    )
    change = Change(1, "2026-11-24T03:00:00+00:00", "a/b#1", "2.10.0", "reproduces", "fixed", "fixed in 2.10.0", 1)
    return History(tuple(bugs), builds, tuple(answers), (change,), (Run(1, "2026-11-24T03:00:00+00:00", "x", 6, 9.0),))


@pytest.mark.parametrize(
    "flags",
    [(), ("--blink-settings=preferredColorScheme=0",), ("--window-size=500,900",)],
    ids=["light", "dark", "narrow"],
)
def test_axe_finds_nothing_on_the_pages_of_the_ledger(axe: str, tmp_path: Path, flags: tuple[str, ...]) -> None:
    history = watched()
    for page in (grid_page(history), bug_page(history.bugs[0], history.answers[:2], history.changes)):
        found = look(page, axe, tmp_path, *flags)
        assert found["violations"] == []
        assert found["passes"] > 15
        assert not found["wide"]


FILTER = """
{
const name = row => row.cells[0].textContent.slice(0, 5);
const shown = () => [...document.querySelectorAll("#bugs tbody tr")].filter(row => !row.hidden).map(name);
const [words, state, changed] = ["words", "state", "changed"].map(id => document.getElementById(id));
const found = {all: shown()};
words.value = "STILL"; words.dispatchEvent(new Event("input")); found.words = shown();
words.value = ""; state.value = "fixed"; state.dispatchEvent(new Event("change")); found.state = shown();
found.count = document.getElementById("count").textContent;
state.value = ""; changed.checked = true; changed.dispatchEvent(new Event("change")); found.changed = shown();
const pre = document.createElement("pre");
pre.id = "found"; pre.textContent = JSON.stringify(found); document.body.append(pre);
}
"""


def test_the_page_of_the_ledger_filters(axe: str, tmp_path: Path) -> None:
    found = look(grid_page(watched()), "", tmp_path, then=FILTER)
    assert sorted(found["all"]) == ["a/b#1", "a/b#2", "a/b#3"]
    assert found["words"] == ["a/b#2"]
    assert found["state"] == found["changed"] == ["a/b#1"]
    assert found["count"] == "1 of 3 shown"


def test_axe_finds_a_planted_fault(whole: Report, axe: str, tmp_path: Path) -> None:
    broken = render(whole).replace('<html lang="en">', "<html>")
    assert "html-has-lang" in [violation[0] for violation in look(broken, axe, tmp_path)["violations"]]
