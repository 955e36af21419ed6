"""The ledger in the database: bugs, builds, answers, changes of state and runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torchbisect.core.decode import DecodeError, decode, read_json
from torchbisect.core.errors import InputError
from torchbisect.triage.database import Database
from torchbisect.triage.ledger.bug import KnownBug
from torchbisect.triage.ledger.state import Control, Seen, Sighting, Standing


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
            raise InputError(
                f"{self._database.path}: the row {str(name)[:60]!r} of the table bug can't be read: {error}; delete it"
            ) from error

    def put_bugs(self, bugs: Iterable[WatchedBug]) -> None:
        """Store bugs; one replaces an older one of its name."""
        with self._database.transaction() as connection:
            for one in bugs:
                _put_bug(connection, one)

    def builds(self) -> tuple[AskedBuild, ...]:
        """Return the builds that were asked, in the order of their first question."""
        rows = self._read("SELECT name, channel, day, healthy, reason FROM build ORDER BY rowid")
        return tuple(AskedBuild(name, channel, day, bool(fit), reason) for name, channel, day, fit, reason in rows)

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
        return dict(self._read("SELECT build, min(day) FROM answer GROUP BY build"))

    def _answer(self, *row: Any) -> StoredAnswer:
        bug, build, key, day, seen, healthy, control, reason, control_reason, seconds, counted = row
        try:
            sighting = Sighting(build, day, Seen(seen), bool(healthy), Control(control), reason, control_reason)
            return StoredAnswer(bug, key, sighting, float(seconds), bool(counted))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self._database.path}: a row {str(bug)[:60]!r} of the table answer can't be read: {error}; delete it"
            ) from error

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
        columns = "run, time, bug, build, before, after, words, id, commented"
        rows = self._read(f"SELECT {columns} FROM change ORDER BY id DESC")
        return tuple(Change(*row) for row in rows)

    def mark_commented(self, bug: str) -> None:
        """Store that a comment says the present state of a bug."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE change SET commented = 1 WHERE bug = ?", (bug,))

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that asked something, the oldest first."""
        rows = self._read("SELECT id, started, finished, asked, seconds FROM run ORDER BY id")
        return tuple(Run(*row) for row in rows)

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
