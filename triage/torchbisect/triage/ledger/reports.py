"""Find the bugs to watch: the reports of a triage, of a folder, and those that were named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from torchbisect.core.errors import InputError
from torchbisect.core.printable import one_line
from torchbisect.core.retry import Notify
from torchbisect.reports import files
from torchbisect.reports.model.report import Report
from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.ledger.bug import known_bug, reported_standing
from torchbisect.triage.ledger.state import Standing
from torchbisect.triage.ledger.store import WatchedBug


def bugs_to_watch(
    folder: Path, rows: Sequence[IssueRow], added: Sequence[Path], day: str, notify: Notify
) -> list[WatchedBug]:
    """Return the bugs of a folder and of the reports that were named; one that can't be watched is told of.

    Args:
        folder: the folder of a triage, or one with a report, or one with folders that have one.
        rows: the issues of the triage's database.
        added: further reports: folders or files.
        day: the day on which they come into the ledger.

    Raises:
        InputError: a report that was named can't be read or can't be watched.
    """
    found = dict(_of_triage(folder, rows, day, notify))
    runs = {folder / row.report for row in rows if row.report}
    for place in sorted(_report_folders(folder)):
        if place not in runs:
            found.update(_of_report(place, _name(place, folder), day, notify))
    for place in added:
        name = _name(place if place.is_dir() else place.parent, folder)
        found.update(_bug(files.load(place), name, day, {}))
    return list(found.values())


def _of_triage(folder: Path, rows: Iterable[IssueRow], day: str, notify: Notify) -> Iterator[tuple[str, WatchedBug]]:
    for row in rows:
        if row.state in ("mismatch", "flaky") and row.report:
            facts = {"title": row.title, "url": row.url}
            yield from _of_report(folder / row.report, row.name, day, notify, facts).items()


def _of_report(
    place: Path, name: str, day: str, notify: Notify, facts: Mapping[str, str] | None = None
) -> dict[str, WatchedBug]:
    """Return the bug of a report that nobody named; none if it can't be watched."""
    try:
        report = files.load(place)
        # A folder of results has reports without a mismatch too, and nobody asks to watch these.
        return {} if report.mismatch is None else _bug(report, name, day, facts or {})
    except InputError as error:
        notify(f"{one_line(name, 80)} is not watched: {error}")
        return {}


def _bug(report: Report, name: str, day: str, facts: Mapping[str, str]) -> dict[str, WatchedBug]:
    bug = known_bug(report, name, **facts)
    if isinstance(bug, str):
        raise InputError(f"{one_line(name, 80)} can't be watched: {bug}")
    standing = reported_standing(report)
    return {name: WatchedBug(bug, standing, day, standing.last_bad)}


def _report_folders(folder: Path) -> Iterator[Path]:
    if (folder / files.JSON).is_file():
        yield folder
    yield from (place.parent for place in folder.glob(f"*/{files.JSON}"))


def _name(place: Path, folder: Path) -> str:
    """Return a name for a report: its folder's, relative to the ledger's where it lies there."""
    whole = Path(os.path.realpath(place))
    base = Path(os.path.realpath(folder))
    name = whole.relative_to(base).as_posix() if whole.is_relative_to(base) else whole.as_posix().lstrip("/")
    # A file's name may have bytes that are no text, which SQLite cannot store.
    name = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return name if name not in ("", ".") else whole.name or "report"


def merged(known: Iterable[WatchedBug], found: Iterable[WatchedBug]) -> list[WatchedBug]:
    """Return the bugs that are new or have changed; a bug that is asked otherwise than before begins anew."""
    before = {one.bug.name: one for one in known}
    return [
        _continued(before.get(one.bug.name), one)
        for one in found
        if one.bug.name not in before or before[one.bug.name].bug != one.bug
    ]


def _continued(before: WatchedBug | None, now: WatchedBug) -> WatchedBug:
    if before is None:
        return now
    standing: Standing = before.standing if before.bug.key == now.bug.key else now.standing
    return WatchedBug(now.bug, standing, before.added, now.reported)
