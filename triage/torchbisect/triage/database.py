"""The database of a triage: one SQLite file with a row an issue in the table ``issue``, and the ledger's tables."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from torchbisect.core.decode import DecodeError, decode, read_json
from torchbisect.core.errors import DiskFull, InputError, MachineError
from torchbisect.core.printable import one_line
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
_LARGEST = 2 << 30
#: What is computed while a table is read or written: views, triggers, virtual tables, and expressions for columns,
#: conditions and indexes. A stranger's file could keep a reader busy for ever by it. Other programs may add views.
_COMPUTED = """
SELECT name FROM sqlite_master AS m WHERE type = 'trigger' OR upper(sql) LIKE 'CREATE VIRTUAL%'
OR lower(tbl_name) IN {own} AND (
    type = 'view' OR type = 'table' AND upper(sql) LIKE '%CHECK%'
    OR type = 'table' AND EXISTS (SELECT 1 FROM pragma_table_xinfo(m.name) WHERE hidden > 1 OR dflt_value LIKE '%(%')
    OR type = 'index' AND upper(sql) LIKE '%WHERE%'
    OR type = 'index' AND EXISTS (SELECT 1 FROM pragma_index_xinfo(m.name) WHERE cid = -2)
) LIMIT 1
"""


class Database:
    """The rows of a triage, in the order of their first ``put``. A context manager that closes the file.

    Raises:
        InputError: the file is not such a database, or a newer torchbisect wrote it.
        DiskFull, MachineError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_file(path)
        with self.errors_explained():
            self._connection = sqlite3.connect(path, timeout=30.0)
            self._check_schema()
            self._check_owner()
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

    def _check_schema(self) -> None:
        """Refuse a file that computes something when it is read. Raise ``InputError``."""
        self._connection.execute("PRAGMA trusted_schema = OFF")
        own = ", ".join(map(repr, ("issue", *TABLES)))
        computed = self._connection.execute(_COMPUTED.format(own=f"({own})")).fetchone()
        if computed:
            self._connection.close()
            name = one_line(str(computed[0]), 60)
            raise InputError(f"{self.path}: {name!r} computes something when read: remove it, or name another --out")

    def _check_owner(self) -> None:
        """Refuse the database of another program, which has tables but not that of the issues. Raise ``InputError``."""
        tables = self._connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' LIMIT 1").fetchone()
        columns = {row[1] for row in self._connection.execute("PRAGMA table_info(issue)")}
        if tables and not {"name", "state"} <= columns:
            self._connection.close()
            raise self._foreign()

    def _foreign(self) -> InputError:
        return InputError(
            f"{self.path} is not a database of torchbisect triage: name another --out, or with watch a triage's folder"
        )

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
                raise self._foreign() from error
            if any(words in said for words in _FULL):
                message = f"{self.path}: the disk is full; free some space, then run the same command again"
                raise DiskFull(message) from error
            raise MachineError(f"{self.path}: {said}; nothing was lost, run the same command again") from error


def _check_file(path: Path) -> None:
    """Refuse what is no regular file, or too large. Raise ``InputError``."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return  # SQLite makes it, or says why it can't
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}): name another --out") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is no regular file: name another --out")
    if status.st_size > _LARGEST:
        raise InputError(f"{path} has more than {_LARGEST >> 30} GiB: name another --out")


def _values(row: IssueRow) -> dict[str, Any]:
    # A text from an issue may have an unpaired surrogate, which SQLite cannot store.
    values = {
        name: value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value
        for name, value in asdict(row).items()
    }
    return {**values, "labels": json.dumps(row.labels)}
