"""The ledger's values: bugs of reports, rows of the database, known issues, pages and the feed."""

from __future__ import annotations

import json
import re
import sqlite3
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_reports import texts

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.core.errors import InputError
from torchbisect.pipeline.options import Options
from torchbisect.reports import files
from torchbisect.reports.model.report import Report
from torchbisect.triage.database import VERSION, Database
from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.jobs import IssueJob, IssueTask
from torchbisect.triage.ledger.bug import AskedScript, KnownBug, known_bug, reported_standing
from torchbisect.triage.ledger.feed import feed
from torchbisect.triage.ledger.known import KnownBugs
from torchbisect.triage.ledger.output import to_json, write_pages
from torchbisect.triage.ledger.page import MOST_BUILDS, History, bug_page, grid_page
from torchbisect.triage.ledger.questions import Asks, WatchTask
from torchbisect.triage.ledger.reports import bugs_to_watch, merged
from torchbisect.triage.ledger.state import Control, Edge, Seen, Sighting, Standing, State
from torchbisect.triage.ledger.store import AskedBuild, Change, Ledger, Run, StoredAnswer, WatchedBug
from torchbisect.triage.ray_workers import _json_for_any_node
from torchbisect.triage.tasks import task_from_json

FIXED = Standing(
    State.FIXED, "agrees", "2.14.0", "2.13.0", "2.14.0", Edge(BoundaryKind.FIX, "2.13.0", "2.14.0", True, True)
)
SOURCE = "import torch\nx = torch.ones(2)  # two\n"


def bug(name: str, *, kind: str = "raises", fingerprint: str = "f1", source: str = SOURCE) -> WatchedBug:
    script = AskedScript("minimal", source, {"kind": kind}, {})
    return WatchedBug(
        KnownBug(name, kind=kind, fingerprint=fingerprint, scripts=(script,)), FIXED, "2026-11-01", "2.8.0"
    )


def test_a_bug_is_what_its_report_says(whole: Report) -> None:
    report = replace(
        whole,
        command="torchbisect run --torch 2.8.0 --seed 7 --timeout 30 --with einops --with 'numpy<2' repro.py "
        "-- --test --with other --seed 8",
        arguments=("--epochs", "1"),
    )
    found = known_bug(report, "a/b#1", url="https://github.com/a/b/issues/1")
    assert isinstance(found, KnownBug)
    assert (found.packages, found.options) == (("einops", "numpy<2"), {"seed": 7, "timeout": 30.0})
    assert [script.name for script in found.scripts] == ["minimal", "original"]
    assert KnownBug.from_json(found.to_json()) == found
    asked = [script.question(found).repro for script in found.scripts]
    assert (asked[0].arguments, asked[1].arguments) == ((), ("--epochs", "1"))
    assert asked[1].seed == 7
    options = found.applied_to(Options(None))
    assert (options.packages, options.timeout) == (("einops", "numpy<2"), 30.0)
    other = replace(found, title="another", url="")
    assert (other.key == found.key, replace(found, packages=()).key == found.key) == (True, False)


def test_a_test_of_the_users_own_cannot_be_watched(whole: Report) -> None:
    found = known_bug(replace(whole, command="torchbisect run --test 'sh t.sh'"), "x")
    assert isinstance(found, str)
    assert "--test" in found


def test_a_flaky_bug_is_run_until_luck_is_unlikely(whole: Report) -> None:
    assert whole.mismatch is not None
    flaky = replace(whole, verdict="flaky", mismatch=replace(whole.mismatch, runs=4, shown=2))
    found = known_bug(flaky, "x")
    assert isinstance(found, KnownBug)
    assert (found.rate, found.runs) == (0.5, 7)
    assert reported_standing(replace(flaky, bisect=None)).state is State.FLAKY
    assert reported_standing(flaky).words == "fixed after 2.8.0, by 2.9.1"


def test_the_bugs_of_a_folder_are_found_once(whole: Report, tmp_path: Path) -> None:
    files.write(whole, tmp_path / "runs" / "one")
    files.write(whole, tmp_path / "two")
    files.write(replace(whole, mismatch=None, verdict="none"), tmp_path / "three")
    files.write(whole, tmp_path / "elsewhere" / "four")
    row = IssueRow("a/b#1", state="mismatch", report="runs/one", title="wrong", url="https://github.com/a/b/issues/1")
    said: list[str] = []
    found = bugs_to_watch(tmp_path, [row], [tmp_path / "elsewhere" / "four"], "2026-11-24", said.append)
    assert [one.bug.name for one in found] == ["a/b#1", "two", "elsewhere/four"]
    assert found[0].bug.url == row.url
    assert not said
    changed = replace(found[0], bug=replace(found[0].bug, packages=("x",)))
    known = [replace(found[0], standing=FIXED), replace(found[1], standing=FIXED)]
    again = merged(known, [found[0], found[1], found[2]])
    assert [one.bug.name for one in again] == ["elsewhere/four"], "a known bug is stored again"
    assert merged(known, [changed])[0].standing == changed.standing, "a bug that is asked otherwise begins anew"
    retitled = replace(found[0], bug=replace(found[0].bug, title="another title"))
    assert merged(known, [retitled])[0].standing == FIXED


def test_a_report_that_was_named_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no report in"):
        bugs_to_watch(tmp_path, [], [tmp_path], "2026-11-24", lambda text: None)


def test_the_ledger_reads_back_what_it_stored(tmp_path: Path) -> None:
    sighting = Sighting("2.14.0", "2026-11-24", Seen.NONE, True, Control.SHOWN, "agrees", "wrong\ud800")
    with Database(tmp_path / "t.sqlite") as database:
        ledger = Ledger(database)
        ledger.put_bugs([bug("a"), bug("b")])
        ledger.put_build(AskedBuild("2.14.0", "release", "2026-11-24", False, "broken"))
        number = ledger.begin_run("2026-11-24T01:00:00+00:00")
        change = Change(number, "2026-11-24T01:00:01+00:00", "a", "2.14.0", "reproduces", "fixed", "fixed in 2.14.0")
        ledger.put_answer(StoredAnswer("a", "k", sighting, 1.5, True), bug("a"), change)
        ledger.end_run(Run(number, "", "2026-11-24T02:00:00+00:00", 1, 2.0))
    with Database(tmp_path / "t.sqlite") as database:
        ledger = Ledger(database)
        assert ledger.bugs() == (bug("a"), bug("b"))
        assert ledger.builds() == (AskedBuild("2.14.0", "release", "2026-11-24", False, "broken"),)
        (answer,) = ledger.answers(bug="a")
        assert answer.sighting == replace(sighting, control_reason="wrong\\ud800")
        assert ledger.answers(build="2.13.0") == ()
        assert ledger.changes() == (replace(change, number=1),)
        assert [(run.asked, run.finished) for run in ledger.runs()] == [(1, "2026-11-24T02:00:00+00:00")]
        ledger.mark_commented("a")
        assert ledger.changes()[0].commented


def test_a_database_from_before_the_ledger_gets_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as connection:
        # As version 2 made it.
        columns = "name, key, title, url, state, reason, torch, kind, summary, signature, component, backend, operators"
        columns += ", last_good, first_bad, bad_commit, last_bad, first_fixed, fix_commit, labels, unfinished, report"
        types = ", ".join(f"{name} TEXT NOT NULL DEFAULT ''" for name in (*columns.split(", "), "finished", "stated"))
        connection.execute(f"CREATE TABLE issue ({types}, seconds REAL NOT NULL, PRIMARY KEY (name))")
        connection.execute("INSERT INTO issue (name, state, labels, seconds) VALUES ('a', 'mismatch', '[]', 1)")
        connection.execute("PRAGMA user_version = 2")
    with Database(path) as database:
        assert [(row.name, row.known) for row in database.rows()] == [("a", "")]
        Ledger(database).put_bugs([bug("a")])
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert connection.execute("SELECT name, state, words FROM bug").fetchall() == [
            ("a", "fixed", "fixed in 2.14.0")
        ]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("bug", "data = '{}'"),
        ("bug", "data = 'x'"),
        ("bug", "data = 3"),
        ("bug", 'standing = \'{"state": "splendid"}\''),
        ("answer", "seen = 'perhaps'"),
        ("answer", "seconds = 'long'"),
    ],
)
def test_a_row_that_another_program_spoiled_is_named(tmp_path: Path, table: str, change: str) -> None:
    path = tmp_path / "t.sqlite"
    with Database(path) as database:
        Ledger(database).put_bugs([bug("a")])
        Ledger(database).put_answer(StoredAnswer("a", "k", Sighting("2.14.0", "2026-11-24", Seen.SAME)))
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {change}")
    with Database(path) as database, pytest.raises(InputError, match=f"table {table} can't be read"):
        (Ledger(database).bugs if table == "bug" else Ledger(database).answers)()


def test_an_issue_with_the_script_of_a_known_bug_is_named() -> None:
    known = KnownBugs([bug("a/b#1")])
    assert known.with_script("a/b#2", SOURCE.replace("# two", "#  the same")) == "same as a/b#1, fixed in 2.14.0"
    assert known.with_script("a/b#1", SOURCE) is None, "an issue is not a duplicate of itself"
    assert known.with_script("a/b#2", SOURCE + "print(x)\n") is None
    assert known.with_script("a/b#2", "") is None


def test_an_issue_with_the_mismatch_of_a_known_bug_is_named() -> None:
    known = KnownBugs([bug("a/b#1"), bug("a/b#3", kind="values", fingerprint="f3", source="x = y.roll(1)\n")])
    row = IssueRow("a/b#2", state="mismatch", kind="raises", signature="f1")
    assert known.with_mismatch(row) == "same as a/b#1, fixed in 2.14.0"
    assert known.with_mismatch(replace(row, state="none")) is None
    values = replace(row, kind="values", signature="f3")
    assert known.with_mismatch(replace(values, operators="sort")) is None
    assert known.with_mismatch(replace(values, operators="roll")) == "same as a/b#3, fixed in 2.14.0"
    assert known.decisive_signatures("a/b#2") == ("f1",), "wrong numbers alone identify no bug"
    assert known.decisive_signatures("a/b#1") == ()


def test_the_signatures_that_end_a_run_reach_its_worker(tmp_path: Path) -> None:
    job = IssueJob("a", source="print(1)\n")
    task = replace(IssueTask.of(job, Options(None), tmp_path, stated=False), known=("f1", "f2"))
    assert task_from_json(task.to_json()) == task


@pytest.mark.parametrize("named", [None, "/opt/python/bin/python"])
def test_a_question_reaches_another_machine_with_a_python_of_its_own(tmp_path: Path, named: str | None) -> None:
    options = Options(None, out=Path("here"), **({"python": named} if named else {}))  # type: ignore[arg-type]
    edge = Edge(BoundaryKind.FIX, "2.13.0", "2.14.0")
    question = WatchTask("a", Asks.EDGE, "2.14.0", options, bug("a").bug, Seen.SAME, edge)
    there = task_from_json(json.loads(json.dumps(_json_for_any_node(question))))
    assert isinstance(there, WatchTask)
    moved = there.in_folder(tmp_path, "/node/python")
    assert (moved.options.python, moved.options.out) == (named or "/node/python", tmp_path)
    assert replace(moved, options=options) == question


sightings = st.builds(
    Sighting,
    st.sampled_from(["2.6.0", "2.10.0", "2.9.0.dev20250801"]),
    st.just("2026-11-24"),
    st.sampled_from(Seen),
    st.booleans(),
    st.sampled_from(Control),
    texts,
    texts,
)


@st.composite
def ledgers(draw: st.DrawFn) -> History:
    names = draw(st.lists(texts, min_size=1, max_size=3, unique=True))
    bugs = tuple(
        WatchedBug(
            KnownBug(
                name, draw(texts), draw(texts), draw(texts), scripts=(AskedScript("minimal", draw(texts), {}, {}),)
            ),
            replace(FIXED, state=draw(st.sampled_from(State)), reason=draw(texts)),
            "2026-11-01",
            "2.8.0",
        )
        for name in names
    )
    answers = tuple(
        StoredAnswer(draw(st.sampled_from(names)), "k", draw(sightings)) for _ in range(draw(st.integers(0, 4)))
    )
    changes = tuple(
        Change(1, "2026-11-24T00:00:00+00:00", name, "2.10.0", "reproduces", "fixed", draw(texts), number)
        for number, name in enumerate(names, 1)
    )
    builds = (AskedBuild("2.10.0", "release", "2026-11-24"), AskedBuild("2.11.0", "release", "", False, draw(texts)))
    return History(bugs, builds, answers, changes, (Run(1, "2026-11-24T00:00:00+00:00", "x", 3, 1.0),))


@given(ledgers())
def test_the_pages_are_safe(history: History) -> None:
    pages = [grid_page(history)]
    pages += [bug_page(one, history.answers, history.changes) for one in history.bugs]
    for number, page in enumerate(pages):
        tags = re.findall(r"<(\w+)", re.sub(r"<script>.*</script>", "<script>", page, flags=re.DOTALL))
        assert tags.count("script") == (number == 0)
        assert not {"img", "iframe", "object", "embed", "base", "form"} & set(tags)
        for address in re.findall(r'href="([^"]*)"', page):
            assert re.match(r"https://|bugs/[A-Za-z0-9.-]+/index\.html$|watch\.xml$|\.\./\.\./watch\.html$", address)
        assert "\x1b" not in page
        assert "\u202e" not in page
    assert "default-src 'none'" in pages[0]


@given(ledgers())
def test_the_feed_is_well_formed_and_its_entries_keep_their_identity(history: History) -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    root = xml.fromstring(feed(history.changes))
    entries = root.findall(f"{atom}entry")
    assert len(entries) == len(history.changes)
    identities = [entry.findtext(f"{atom}id") for entry in entries]
    assert len(set(identities)) == len(identities)
    assert identities == [entry.findtext(f"{atom}id") for entry in xml.fromstring(feed(history.changes))[4:]]
    for element in (root, *entries):
        assert all(element.find(f"{atom}{name}") is not None for name in ("id", "title", "updated"))


def test_a_page_is_written_for_every_bug_and_again_for_those_that_were_asked(tmp_path: Path) -> None:
    history = History((bug("a/b#1"), bug("a/b#2")), (), (), (), ())
    page, _ = write_pages(history, tmp_path, set(), lambda name: ())
    places = sorted(tmp_path.glob("bugs/*/index.html"))
    assert len(places) == 2
    assert all(place.relative_to(tmp_path).as_posix() in page.read_text() for place in places)
    for place in places:
        place.write_text("old")
    write_pages(history, tmp_path, {"a/b#2"}, lambda name: ())
    assert sorted(place.read_text() == "old" for place in places) == [False, True]


def test_changes_since_the_last_finished_run_are_shown() -> None:
    changes = tuple(
        Change(run, "2026-11-24T00:00:00+00:00", f"bug {run}", "", "reproduces", "fixed", "", run)
        for run in (4, 3, 2, 1)
    )
    # The third run was killed.
    runs = tuple(Run(number, "", "" if number == 3 else "x", 1, 1.0) for number in (1, 2, 3, 4))
    assert [one.bug for one in History((), (), (), changes, runs).last_changes] == ["bug 4", "bug 3"]


def test_the_json_has_every_bug_with_its_answers() -> None:
    sighting = Sighting("2.14.0", "2026-11-24", Seen.NONE)
    builds = (AskedBuild("2.14.0", "release", "2026-11-24"),)
    history = History((bug("a"),), builds, (StoredAnswer("a", "k", sighting),), (), ())
    found = to_json(history)
    assert found["bugs"][0]["state"] == "fixed"
    assert found["bugs"][0]["words"] == "fixed in 2.14.0"
    assert found["bugs"][0]["answers"][0]["build"] == "2.14.0"
    assert [build["name"] for build in found["builds"]] == ["2.14.0"]


def test_the_page_has_the_newest_builds_and_a_bug_all(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        ledger = Ledger(database)
        ledger.put_bugs([bug("a")])
        names = [f"2.14.0.dev202601{day:02}" for day in range(1, 31)] + [
            f"2.15.0.dev202602{day:02}" for day in range(1, 29)
        ]
        names += ["2.13.0", "2.14.0", "2.15.0"]
        for name in names:
            ledger.put_answer(StoredAnswer("a", "k", Sighting(name, "2026-11-24", Seen.SAME)))
        ledger.put_build(AskedBuild("2.16.0", "release", "2026-11-24", False, "broken"))
        history = History.of(ledger)
        assert len(history.builds) == MOST_BUILDS
        assert [build.name for build in history.builds[-3:]] == ["2.15.0.dev20260228", "2.15.0", "2.16.0"]
        assert len(history.answers) == MOST_BUILDS - 1
        assert len(ledger.answers(bug="a")) == len(names)


SPOILED = {
    "build": "CREATE TABLE build (name, channel, day, healthy, reason); "
    "INSERT INTO build VALUES (NULL, x'ff', 3, 'x', 4)",
    "change": "CREATE TABLE change (id, run, time, bug, build, before, after, words, commented); "
    "INSERT INTO change VALUES (x'01', 'a', 3, NULL, NULL, NULL, NULL, 9, 'z')",
    "run": "CREATE TABLE run (id, started, finished, asked, seconds); INSERT INTO run VALUES (1, '', '', 1, 9e999)",
    "answer": "CREATE TABLE answer (build, day); INSERT INTO answer VALUES ('2.8.0', 3)",
}


@pytest.mark.parametrize("table", SPOILED)
def test_a_spoiled_row_of_each_table_is_named(tmp_path: Path, table: str) -> None:
    Database(tmp_path / "t.sqlite").close()
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.executescript(f"DROP TABLE {table}; {SPOILED[table]}")
    with Database(tmp_path / "t.sqlite") as database:
        ledger = Ledger(database)
        read = {"build": ledger.builds, "change": ledger.changes, "run": ledger.runs, "answer": ledger.first_days}
        with pytest.raises(InputError, match=f"of the table {table} can't be read") as caught:
            read[table]()
    assert str(caught.value).isprintable()
