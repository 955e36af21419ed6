"""The database of a triage: what is put is read back, killed or not."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchbisect.core.errors import InputError, MachineError
from torchbisect.triage.database import Database
from torchbisect.triage.rows import Row

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
rows = st.builds(
    Row,
    **dict.fromkeys(("name", "title", "state", "reason", "summary", "signature", "report"), texts),
    labels=st.lists(texts, max_size=3).map(tuple),
    seconds=st.floats(0, 1e6),
)


@given(st.lists(rows, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_read_back_in_order_the_last_word_of_each(tmp_path_factory: pytest.TempPathFactory, given: list[Row]) -> None:
    path = tmp_path_factory.mktemp("triage") / "t.sqlite"
    with Database(path) as database:
        database.put(*given)
    with Database(path) as database:
        assert database.rows() == tuple({row.name: row for row in given}.values())


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        database.put(Row("x", title="a\ud800b"))
        assert database.rows()[0].title == "a\\ud800b"


def test_all_or_nothing(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        with pytest.raises(MachineError):
            database.put(Row("a"), Row("b", title=None))  # type: ignore[arg-type]
        assert database.rows() == ()


def test_people_may_ask_it_themselves(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        database.put(Row("a", state="mismatch", first_bad="2.9.0", labels=("oncall: pt2",)))
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        found = connection.execute("SELECT name, labels FROM issue WHERE first_bad = '2.9.0'").fetchall()
    assert found == [("a", '["oncall: pt2"]')]


def test_another_file(tmp_path: Path) -> None:
    (tmp_path / "t.sqlite").write_text("not a database, but long enough that SQLite looks at its first bytes\n" * 9)
    with pytest.raises(InputError, match="name another --out"):
        Database(tmp_path / "t.sqlite")


def test_a_newer_one(tmp_path: Path) -> None:
    Database(tmp_path / "t.sqlite").close()
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="newer"):
        Database(tmp_path / "t.sqlite")
