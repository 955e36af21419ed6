"""The database of a triage: one SQLite file with a row an issue in the table ``issue``, and the ledger's tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from torchbisect.core.decode import DecodeError, decode, read_json
from torchbisect.core.errors import DiskFull, InputError, MachineError
from torchbisect.triage.issue_row import STATES, IssueRow
from torchbisect.triage.ledger_tables import TABLES

#: Version of the columns and their meanings, stored in the file as ``PRAGMA user_version``.
#: 2 added ``issue.stated``, 3 the ledger's tables and ``issue.known``.
VERSION = 3
_TYPES = {"seconds": "REAL NOT NULL"}
_NAMES = tuple(field.name for field in fields(IssueRow))
# SQLite's messages for a file that is not a database or a damaged one, and for a full disk.
_NO_DATABASE = ("not a database", "malformed", "Could not decode")
_FULL = ("disk is full", "disk I/O error")


class Database:
    """The rows of a triage, in the order of their first ``put``. A context manager that closes the file.

    Raises:
        InputError: the file is not such a database, or a newer torchbisect wrote it.
        DiskFull, MachineError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.errors_explained():
            self._connection = sqlite3.connect(path, timeout=30.0)
            version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
            if version > VERSION:
                self._connection.close()
                raise InputError(f"{path} was written by a newer torchbisect: use that one, or name another --out")
            types = {name: _TYPES.get(name, "TEXT NOT NULL DEFAULT ''") for name in _NAMES}
            columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
            with self._connection:
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS issue ({columns}, PRIMARY KEY (name))")
                there = {row[1] for row in self._connection.execute("PRAGMA table_info(issue)")}
                for name in [name for name in _NAMES if name not in there]:
                    # An older torchbisect wrote the file.
                    self._connection.execute(f"ALTER TABLE issue ADD COLUMN {name} {types[name]}")
                for name, columns in TABLES.items():
                    self._connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
                self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for one transaction: all of it is stored, or nothing."""
        with self.errors_explained(), self._connection:
            yield self._connection

    def rows(self) -> tuple[IssueRow, ...]:
        """Return all rows, the oldest first. Raises ``InputError`` for a row that another program has spoiled."""
        with self.errors_explained():
            found = self._connection.execute(f"SELECT {', '.join(_NAMES)} FROM issue ORDER BY rowid").fetchall()
        return tuple(self._row(number, dict(zip(_NAMES, values))) for number, values in enumerate(found, 1))

    def _row(self, number: int, values: dict[str, Any]) -> IssueRow:
        """Return a row of the table, which other programs may have written to."""
        try:
            if isinstance(values["labels"], str):
                values["labels"] = read_json(values["labels"])
            row = decode(IssueRow, values, "row")
            if row.state not in STATES:
                raise DecodeError(f"row.state should be one of {', '.join(STATES)}, not {row.state[:40]!r}")
        except DecodeError as error:
            raise InputError(
                f"{self.path}: row {number} of the table issue can't be read: {error}; delete it, or name another --out"
            ) from error
        return row

    def put(self, *rows: IssueRow) -> None:
        """Store rows in one transaction; a row replaces an older one with its name and keeps that one's position."""
        places = ", ".join(f":{name}" for name in _NAMES)
        changes = ", ".join(f"{name} = excluded.{name}" for name in _NAMES if name != "name")
        statement = (
            f"INSERT INTO issue ({', '.join(_NAMES)}) VALUES ({places}) ON CONFLICT (name) DO UPDATE SET {changes}"
        )
        with self.errors_explained(), self._connection:
            self._connection.executemany(statement, [_values(row) for row in rows])

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Turn an error of SQLite into one that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            said = str(error)
            if any(words in said for words in _NO_DATABASE):
                raise InputError(f"{self.path} is not a database of torchbisect triage: name another --out") from error
            if any(words in said for words in _FULL):
                message = f"{self.path}: the disk is full; free some space, then run the same command again"
                raise DiskFull(message) from error
            raise MachineError(f"{self.path}: {said}; nothing was lost, run the same command again") from error


def _values(row: IssueRow) -> dict[str, Any]:
    # A text from an issue may have an unpaired surrogate, which SQLite cannot store.
    values = {
        name: value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value
        for name, value in asdict(row).items()
    }
    return {**values, "labels": json.dumps(row.labels)}
