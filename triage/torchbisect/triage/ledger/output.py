"""Show what a watch found: files for a browser and a feed reader, a table for a terminal, and JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchbisect.containers.store.disk import disk_errors
from torchbisect.core.printable import counted, one_line
from torchbisect.core.scrub import scrub
from torchbisect.reports.files import replace_text
from torchbisect.triage.ledger.feed import feed
from torchbisect.triage.ledger.page import FEED, PAGE, SIGNS, History, bug_page, grid_page
from torchbisect.triage.ledger.state import State
from torchbisect.triage.ledger.store import Change, StoredAnswer, WatchedBug
from torchbisect.triage.ledger.watch import BUGS, Watch, bug_folder

#: Width of the table where standard output is not a terminal.
WIDTH = 160
#: The newest builds in the table on a terminal.
_BUILDS = 6
_STYLES = {
    State.REGRESSED: "bold red",
    State.REPRODUCES: "red",
    State.CHANGED: "yellow",
    State.FLAKY: "yellow",
    State.FIXED: "green",
}


def write_pages(
    history: History, folder: Path, touched: Collection[str], answers_of: Callable[[str], Sequence[StoredAnswer]]
) -> tuple[Path, ...]:
    """Write the page, the feed and the page of each bug that was asked; return the first two.

    Args:
        touched: the names of the bugs whose history has grown.
        answers_of: returns all answers about a bug.
    """
    changes: dict[str, list[Change]] = defaultdict(list)
    for change in history.changes:
        changes[change.bug].append(change)
    for one in history.bugs:
        name = one.bug.name
        place = folder / BUGS / bug_folder(name)
        if name in touched or not (place / "index.html").is_file():
            with disk_errors(place, option="the ledger's folder"):
                place.mkdir(parents=True, exist_ok=True)
            replace_text(place / "index.html", bug_page(one, answers_of(name), changes[name]))
    replace_text(folder / FEED, feed(history.changes))
    replace_text(folder / PAGE, grid_page(history))
    return folder / PAGE, folder / FEED


def show(history: History, run: Watch, written: Sequence[Path], *, as_json: bool) -> None:
    """Print the ledger: as a table, or all of it as JSON."""
    if as_json:
        click.echo(scrub(json.dumps(to_json(history), indent=2)))
    else:
        Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH).print(_table(history, run, written))


def to_json(history: History) -> dict[str, Any]:
    """Return the ledger as ``--json`` prints it."""
    changed = {one.bug for one in history.last_changes}
    answers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for answer in history.answers:
        answers[answer.bug].append({**asdict(answer.sighting), "seconds": answer.seconds})
    return {
        "bugs": [_bug(one, answers[one.bug.name], changed=one.bug.name in changed) for one in history.bugs],
        "builds": [asdict(build) for build in history.builds],
        "changes": [asdict(change) for change in history.last_changes],
        "runs": [asdict(run) for run in history.runs],
    }


def _bug(one: WatchedBug, answers: list[dict[str, Any]], *, changed: bool) -> dict[str, Any]:
    bug, standing = one.bug, one.standing
    return {
        "name": bug.name,
        "title": bug.title,
        "url": bug.url,
        "summary": bug.summary,
        "reported": one.reported,
        **asdict(standing),
        "words": standing.words,
        "changed": changed,
        "answers": answers,
    }


def _table(history: History, run: Watch, written: Sequence[Path]) -> RenderableType:
    builds = [build for build in history.builds if build.healthy][-_BUILDS:]
    signs = {(answer.bug, answer.sighting.build): SIGNS[answer.sighting.seen][0] for answer in history.answers}
    grid = Table(box=None, pad_edge=False, expand=True)
    grid.add_column("bug", no_wrap=True, overflow="ellipsis")
    grid.add_column("now", no_wrap=True, overflow="ellipsis", ratio=1)
    for build in builds:
        grid.add_column(build.name, no_wrap=True, justify="center")
    for one in sorted(history.bugs, key=lambda bug: list(State).index(bug.standing.state)):
        state, name = one.standing.state, one.bug.name
        cells = [signs.get((name, build.name), "") for build in builds]
        now = Text(one_line(one.standing.words, 160), _STYLES.get(state, ""))
        grid.add_row(Text(one_line(name, 80)), now, *cells)
    counts = Counter(one.standing.state for one in history.bugs)
    words = ", ".join(f"{counts[state]} {state}" for state in State if counts[state])
    asked = f"{counted(run.asked, 'question')} in this run"
    lines: list[RenderableType] = [Text(f"{len(history.bugs)} bugs: {words}; {asked}")]
    lines += [Text(f"written {path}", "dim") for path in written]
    return Group(grid, Text(), *lines)
