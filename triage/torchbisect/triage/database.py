"""The database of a triage: one SQLite file, one table ``issue``, one row an issue, every result a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from torchbisect.core.errors import DiskFull, InputError, MachineError
from torchbisect.triage.rows import Row

#: Grows when a column is renamed, removed or changes its meaning; kept in the file as ``PRAGMA user_version``.
VERSION = 1
_TYPES = {"seconds": "REAL NOT NULL"}
_NAMES = tuple(field.name for field in fields(Row))
# SQLite's own words for a file that is no database, and for a full disk.
_NO_DATABASE = "not a database"
_FULL = ("disk is full", "disk I/O error")


class Database:
    """The rows of a triage, in the order in which the issues came. To be closed, or used with ``with``.

    Raises:
        InputError: the file is something else, or a newer torchbisect wrote it.
        DiskFull, MachineError: it can't be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            self._connection = sqlite3.connect(path, timeout=30.0)
            version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
            if version > VERSION:
                self._connection.close()
                raise InputError(f"{path} was written by a newer torchbisect: use that one, or name another --out")
            columns = ", ".join(f"{name} {_TYPES.get(name, 'TEXT NOT NULL')}" for name in _NAMES)
            with self._connection:
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS issue ({columns}, PRIMARY KEY (name))")
                self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def rows(self) -> tuple[Row, ...]:
        """All rows, the one that came first first."""
        with self._explained():
            found = self._connection.execute(f"SELECT {', '.join(_NAMES)} FROM issue ORDER BY rowid").fetchall()
        return tuple(_row(dict(zip(_NAMES, values))) for values in found)

    def put(self, *rows: Row) -> None:
        """Keep rows, all of them or none; one of the same name is replaced and stays where it stood."""
        places = ", ".join(f":{name}" for name in _NAMES)
        changes = ", ".join(f"{name} = excluded.{name}" for name in _NAMES if name != "name")
        words = f"INSERT INTO issue VALUES ({places}) ON CONFLICT (name) DO UPDATE SET {changes}"
        with self._explained(), self._connection:
            self._connection.executemany(words, [_values(row) for row in rows])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            said = str(error)
            if _NO_DATABASE in said:
                raise InputError(f"{self.path} is no database of torchbisect triage: name another --out") from error
            if any(words in said for words in _FULL):
                raise DiskFull(f"{self.path}: no room; free some space, then give the same command again") from error
            raise MachineError(f"{self.path}: {said}; nothing was lost, give the same command again") from error


def _values(row: Row) -> dict[str, Any]:
    # A text of a stranger's may hold half a surrogate pair, which SQLite can't keep.
    values = {
        name: value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value
        for name, value in asdict(row).items()
    }
    return {**values, "labels": json.dumps(row.labels)}


def _row(values: dict[str, Any]) -> Row:
    return Row(**{**values, "labels": tuple(json.loads(values["labels"]))})
