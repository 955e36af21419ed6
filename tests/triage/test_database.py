"""The database of a triage: rows are stored whole and read back."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchbisect.core.errors import InputError, MachineError
from torchbisect.triage.database import Database
from torchbisect.triage.issue_row import STATES, IssueRow

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
rows = st.builds(
    IssueRow,
    **dict.fromkeys(("name", "title", "reason", "summary", "signature", "report"), texts),
    state=st.sampled_from(STATES),
    labels=st.lists(texts, max_size=3).map(tuple),
    seconds=st.floats(0, 1e6),
)


@given(st.lists(rows, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_last_row_of_each_name_is_read_back_in_order(
    tmp_path_factory: pytest.TempPathFactory, given: list[IssueRow]
) -> None:
    path = tmp_path_factory.mktemp("triage") / "t.sqlite"
    with Database(path) as database:
        database.put(*given)
    with Database(path) as database:
        assert database.rows() == tuple({row.name: row for row in given}.values())


def test_an_unpaired_surrogate_is_escaped(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        database.put(IssueRow("x", title="a\ud800b"))
        assert database.rows()[0].title == "a\\ud800b"


def test_a_put_is_one_transaction(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        with pytest.raises(MachineError):
            database.put(IssueRow("a"), IssueRow("b", title=None))  # type: ignore[arg-type]
        assert database.rows() == ()


def test_other_programs_can_query_it(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        database.put(IssueRow("a", state="mismatch", first_bad="2.9.0", labels=("oncall: pt2",)))
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        found = connection.execute("SELECT name, labels FROM issue WHERE first_bad = '2.9.0'").fetchall()
    assert found == [("a", '["oncall: pt2"]')]


def test_another_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "t.sqlite").write_text("not a database, but long enough that SQLite looks at its first bytes\n" * 9)
    with pytest.raises(InputError, match="name another --out"):
        Database(tmp_path / "t.sqlite")


@pytest.mark.parametrize(
    "change",
    [
        "state = 'splendid'",
        "state = 3",
        "title = x'ff00'",
        "seconds = 'long'",
        "seconds = 9e999",
        "labels = ''",
        "labels = '{}'",
        "labels = '[1]'",
        "labels = 3",
        "labels = '[[[['",
        f"labels = '{'[' * 5000}'",
        f"labels = '[{'9' * 5000}]'",
        "title = CAST(x'ff' AS TEXT)",
    ],
)
def test_a_row_that_another_program_spoiled_is_named(tmp_path: Path, change: str) -> None:
    path = tmp_path / "t.sqlite"
    with Database(path) as database:
        database.put(IssueRow("a"), IssueRow("b"))
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE issue SET {change} WHERE name = 'b'")
    with Database(path) as database, pytest.raises(InputError) as caught:
        database.rows()
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300 + len(str(path))


def test_a_damaged_database_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with Database(path) as database:
        database.put(*[IssueRow(str(number), title="x" * 1000) for number in range(40)])
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises((InputError, MachineError)), Database(path) as database:
        database.rows()


def test_a_newer_database_is_rejected(tmp_path: Path) -> None:
    Database(tmp_path / "t.sqlite").close()
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="newer"):
        Database(tmp_path / "t.sqlite")


def test_a_database_of_an_older_torchbisect_is_read(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        database.put(IssueRow("a", torch="2.8.0"))
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute("ALTER TABLE issue DROP COLUMN stated")
        connection.execute("PRAGMA user_version = 1")
    with Database(tmp_path / "t.sqlite") as database:
        database.put(IssueRow("b", stated="2.6.0a0+git12"))
        assert [(row.name, row.torch, row.stated) for row in database.rows()] == [
            ("a", "2.8.0", ""),
            ("b", "", "2.6.0a0+git12"),
        ]


_ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
COMPUTED = {
    "view": f"DROP TABLE issue; CREATE VIEW issue AS {_ENDLESS}",
    "view-of-the-ledger": f"DROP TABLE run; CREATE VIEW Run AS {_ENDLESS}",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON issue BEGIN "
    f"INSERT INTO run SELECT n, '', '', 0, 0 FROM ({_ENDLESS}); END",
    "default": "DROP TABLE run; CREATE TABLE run (id, started DEFAULT/**/(hex(zeroblob(300000000))), finished)",
    "part-of-an-index": "CREATE INDEX i ON issue (name) WHERE hex(zeroblob(300000000)) > '1'",
    "virtual-table": "DROP TABLE build; CREATE VIRTUAL TABLE build USING fts5(name, channel)",
    "generated-column": "DROP TABLE run; CREATE TABLE run (id, started AS(hex(zeroblob(300000000))), finished)",
    "condition": "DROP TABLE run; CREATE TABLE run (id, started CHECK (length(hex(zeroblob(300000000))) > 1))",
    "index": "CREATE INDEX i ON issue (hex(zeroblob(length(name) * 300000000)))",
}  # fmt: skip


@pytest.mark.parametrize("statements", COMPUTED.values(), ids=COMPUTED)
def test_a_database_that_computes_is_rejected(tmp_path: Path, statements: str) -> None:
    path = tmp_path / "t.sqlite"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.executescript(statements)
    with pytest.raises(InputError, match="computes something"):
        Database(path)


def test_views_of_ones_own_are_allowed(tmp_path: Path) -> None:
    Database(tmp_path / "t.sqlite").close()
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.executescript("CREATE VIEW bad AS SELECT name FROM issue; CREATE INDEX i ON issue (state)")
    with Database(tmp_path / "t.sqlite") as database:
        database.put(IssueRow("a"))
        assert [row.name for row in database.rows()] == ["a"]


def test_a_database_that_is_no_file_or_too_large(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 3 << 30)
    (tmp_path / "loop").symlink_to("loop")
    said = {"fifo": "no regular file", "large": "more than 2 GiB", "loop": "can't be read", ".": "no regular file"}
    for name, words in said.items():
        with pytest.raises(InputError, match=words):
            Database(tmp_path / name)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE photos (x)",
        "CREATE TABLE issue (id INTEGER, body TEXT)",
        "CREATE TABLE bug (id INTEGER)",
        "CREATE TABLE issue (name TEXT PRIMARY KEY)",
    ],
)
def test_a_database_of_another_program_stays_as_it_is(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "theirs.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a database of torchbisect"):
        Database(path)
    assert path.read_bytes() == before
