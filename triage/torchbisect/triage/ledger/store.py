"""The ledger in the database: bugs, builds, answers, changes of state and runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar, cast

from torchbisect.core.decode import DecodeError, decode, read_json
from torchbisect.core.errors import InputError
from torchbisect.triage.database import Database
from torchbisect.triage.ledger.bug import KnownBug
from torchbisect.triage.ledger.state import Control, Seen, Sighting, Standing

Row = TypeVar("Row")


@dataclass(frozen=True)
class WatchedBug:
    """A bug with what is known about it.

    Attributes:
        added: the day on which it came into the ledger, in ISO 8601.
        reported: the build on which it was reported.
    """

    bug: KnownBug
    standing: Standing
    added: str = ""
    reported: str = ""


@dataclass(frozen=True)
class AskedBuild:
    """A build that the ledger has asked, with the result of its health check.

    Attributes:
        day: the day on which it was asked first.
        reason: why it is not healthy.
    """

    name: str
    channel: str
    day: str
    healthy: bool = True
    reason: str = ""


@dataclass(frozen=True)
class StoredAnswer:
    """An answer of a build about a bug.

    Attributes:
        key: the key of the bug when it was asked.
        seconds: the time that the question took.
        counted: the answer has been taken into the bug's standing.
    """

    bug: str
    key: str
    sighting: Sighting
    seconds: float = 0.0
    counted: bool = False


@dataclass(frozen=True)
class Change:
    """A change of a bug's state.

    Attributes:
        run: the number of the run that found it.
        time: the time at which it was found, in ISO 8601.
        build: the build whose answer changed it; empty if it was none.
        words: the new state as a person says it.
        number: its number in the ledger, which only grows.
        commented: it was said in a comment on the issue.
    """

    run: int
    time: str
    bug: str
    build: str
    before: str
    after: str
    words: str
    number: int = 0
    commented: bool = False


@dataclass(frozen=True)
class Run:
    """A run of the watch that asked something."""

    number: int
    started: str
    finished: str
    asked: int
    seconds: float


@dataclass(frozen=True)
class _FirstDay:
    """The first day of a build's answers."""

    build: str
    day: str


class Ledger:
    """The ledger of a database. Every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def bugs(self) -> tuple[WatchedBug, ...]:
        """Return all bugs, the oldest first. Raises ``InputError`` for a row that another program has spoiled."""
        rows = self._read("SELECT name, data, standing, added, reported FROM bug ORDER BY rowid")
        return tuple(self._bug(*row) for row in rows)

    def _bug(self, name: str, data: str, standing: str, added: str, reported: str) -> WatchedBug:
        try:
            bug = KnownBug.from_json(read_json(data))
            return WatchedBug(bug, decode(Standing, read_json(standing), "standing"), added, reported)
        except (DecodeError, TypeError) as error:
            raise self._spoiled("bug", str(name), error) from error

    def put_bugs(self, bugs: Iterable[WatchedBug]) -> None:
        """Store bugs; one replaces an older one of its name."""
        with self._database.transaction() as connection:
            for one in bugs:
                _put_bug(connection, one)

    def builds(self) -> tuple[AskedBuild, ...]:
        """Return the builds that were asked, in the order of their first question."""
        return self._typed("build", AskedBuild, "SELECT name, channel, day, healthy, reason FROM build ORDER BY rowid")

    def put_build(self, build: AskedBuild) -> None:
        """Store a build; its first day is kept."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO build VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                "healthy = excluded.healthy, reason = excluded.reason",
                (build.name, build.channel, build.day, build.healthy, _text(build.reason)),
            )

    def answers(
        self, *, build: str | None = None, bug: str | None = None, builds: Sequence[str] | None = None
    ) -> tuple[StoredAnswer, ...]:
        """Return all answers, or those of one build, about one bug, or of some builds, the oldest first."""
        columns = "bug, build, key, day, seen, healthy, control, reason, control_reason, seconds, counted"
        where = "(:build IS NULL OR build = :build) AND (:bug IS NULL OR bug = :bug)"
        values: dict[str, Any] = {"build": build, "bug": bug}
        if builds is not None:
            where += " AND build IN (SELECT value FROM json_each(:builds))"
            values["builds"] = json.dumps(list(builds))
        rows = self._read(f"SELECT {columns} FROM answer WHERE {where} ORDER BY rowid", values)
        return tuple(self._answer(*row) for row in rows)

    def first_days(self) -> dict[str, str]:
        """Return every build with an answer, and the first day of its answers."""
        rows = self._typed("answer", _FirstDay, "SELECT build, min(day) AS day FROM answer GROUP BY build")
        return {row.build: row.day for row in rows}

    def _answer(self, *row: Any) -> StoredAnswer:
        bug, build, key, day, seen, healthy, control, reason, control_reason, seconds, counted = row
        try:
            sighting = Sighting(build, day, Seen(seen), bool(healthy), Control(control), reason, control_reason)
            return decode(StoredAnswer, asdict(StoredAnswer(bug, key, sighting, float(seconds), bool(counted))), "row")
        except (TypeError, ValueError) as error:
            raise self._spoiled("answer", str(bug), error) from error

    def put_answer(self, answer: StoredAnswer, watched: WatchedBug | None = None, change: Change | None = None) -> None:
        """Store an answer, and with it what it changed: the bug's standing and the change of its state."""
        seen = answer.sighting
        values = (answer.bug, seen.build, answer.key, seen.day, seen.seen.value, seen.healthy, seen.control.value)
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, _text(seen.reason), _text(seen.control_reason), answer.seconds, answer.counted),
            )
            _put_standing(connection, watched, change)

    def put_standing(self, watched: WatchedBug, change: Change | None = None) -> None:
        """Store what is known about a bug, and the change of its state."""
        with self._database.transaction() as connection:
            _put_standing(connection, watched, change)

    def changes(self) -> tuple[Change, ...]:
        """Return all changes of state, the newest first."""
        columns = "run, time, bug, build, before, after, words, id AS number, commented"
        return self._typed("change", Change, f"SELECT {columns} FROM change ORDER BY id DESC")

    def mark_commented(self, bug: str) -> None:
        """Store that a comment says the present state of a bug."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE change SET commented = 1 WHERE bug = ?", (bug,))

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that asked something, the oldest first."""
        return self._typed("run", Run, "SELECT id AS number, started, finished, asked, seconds FROM run ORDER BY id")

    def begin_run(self, started: str) -> int:
        """Begin a run, and return its number."""
        with self._database.transaction() as connection:
            cursor = connection.execute("INSERT INTO run (started) VALUES (?)", (started,))
            return int(cursor.lastrowid or 0)

    def end_run(self, run: Run) -> None:
        """Store the end of a run."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE run SET finished = ?, asked = ?, seconds = ? WHERE id = ?",
                (run.finished, run.asked, run.seconds, run.number),
            )

    def _typed(self, table: str, kind: type[Row], statement: str) -> tuple[Row, ...]:
        """Return the rows of a statement as values of a dataclass whose fields its columns are named for."""
        truths = {field.name for field in fields(cast(Any, kind)) if field.type == "bool"}
        with self._database.transaction() as connection:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row)) for row in cursor.fetchall()]
        found = []
        for row in rows:
            typed = {name: bool(value) if name in truths and value in (0, 1) else value for name, value in row.items()}
            try:
                found.append(decode(kind, typed, "row"))
            except DecodeError as error:
                raise self._spoiled(table, str(row[names[0]]), error) from error
        return tuple(found)

    def _spoiled(self, table: str, row: str, error: Exception) -> InputError:
        place = f"{self._database.path}: a row {row[:60]!r} of the table {table}"
        return InputError(f"{place} can't be read: {error}; delete it")

    def _read(self, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        with self._database.transaction() as connection:
            return connection.execute(statement, values or {}).fetchall()


def _put_bug(connection: sqlite3.Connection, one: WatchedBug) -> None:
    bug, standing = one.bug, one.standing
    values = (bug.name, bug.key, one.added, one.reported, standing.state.value, standing.words)
    connection.execute(
        "INSERT INTO bug VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET key = excluded.key, "
        "state = excluded.state, words = excluded.words, data = excluded.data, standing = excluded.standing",
        (*map(_text, values), json.dumps(bug.to_json()), json.dumps(asdict(standing))),
    )


def _put_standing(connection: sqlite3.Connection, watched: WatchedBug | None, change: Change | None) -> None:
    if watched is not None:
        _put_bug(connection, watched)
    if change is not None:
        connection.execute(
            "INSERT INTO change (run, time, bug, build, before, after, words) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (change.run, change.time, change.bug, change.build, change.before, change.after, _text(change.words)),
        )


def _text(text: str) -> str:
    """Return a text without unpaired surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
