"""Render the table of a triage for a terminal: the issues to look at, then counts of all states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from torchbisect.reports.escape import one_line
from torchbisect.triage.duplicate_groups import duplicate_groups
from torchbisect.triage.issue_row import STATES, IssueRow

_SHOWN = ("mismatch", "flaky", "untestable", "failed")
_STYLES = {"mismatch": "bold red", "flaky": "bold yellow", "failed": "bold magenta", "untestable": "yellow"}


def table(rows: Sequence[IssueRow], files: Sequence[Path] = ()) -> RenderableType:
    """Return a table of the issues with a finding, by state and with duplicates together, then a line of counts.

    Args:
        rows: all issues.
        files: the written files, to be named below the table.
    """
    groups = duplicate_groups(rows)
    first = {name: group.first for group in groups for name in group.names}
    place = {row.name: number for number, row in enumerate(rows)}
    shown = [row for row in rows if row.state in _SHOWN]
    shown.sort(key=lambda row: (_SHOWN.index(row.state), place[first.get(row.name, row.name)], place[row.name]))
    grid = Table(box=None, pad_edge=False, expand=True)
    for heading in ("issue", "state", "what", "component", "broke in", "fixed in"):
        grid.add_column(heading, no_wrap=True, overflow="ellipsis", ratio=1 if heading == "what" else None)
    for row in shown:
        duplicate = first.get(row.name, row.name) != row.name
        name = f"= {row.name}" if duplicate else row.name
        grid.add_row(
            Text(one_line(name, 120), "dim" if duplicate else ""),
            Text(row.state, _STYLES.get(row.state, "")),
            Text(one_line(row.summary or row.reason, 160)),
            Text(one_line(row.component, 40)),
            Text(one_line(row.bad_commit[:12] or row.first_bad, 40)),
            Text(one_line(row.fix_commit[:12] or row.first_fixed, 40)),
        )
    counts = Counter(row.state for row in rows)
    words = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    same = sum(len(group.names) - 1 for group in groups)
    if same:
        words.append(f"{same} look like duplicates (=)")
    lines: list[RenderableType] = [Text(f"{len(rows)} issues: " + ", ".join(words))]
    lines += [Text(f"written {path}", "dim") for path in files]
    return Stack(grid, Text(), *lines) if shown else Stack(*lines)
