"""Render the table of all issues: for a browser as ``triage.html``, and for a terminal."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchbisect.core.printable import one_line
from torchbisect.reports import files
from torchbisect.reports.render.html import template
from torchbisect.reports.sanitize import short_line
from torchbisect.triage.duplicate_groups import duplicate_groups
from torchbisect.triage.issue_row import KNOWN, STATES, IssueRow
from torchbisect.triage.related_issues import related_issues

_COLUMNS = ("Issue", "State", "What", "Component", "torch", "Broke in", "Fixed in", "Same as", "Seconds")
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+/[\w./#?=&%+~-]*")


def html_page(rows: Sequence[IssueRow], noun: str = "issues") -> str:
    """Render one self-contained page that sorts and filters issues and links to their reports.

    The page's policy allows its own script and no other. ``noun`` names what is in the rows.
    """
    groups = duplicate_groups(rows)
    identities = {row.name: f"issue-{number}" for number, row in enumerate(rows, 1)}
    by_name = {row.name: row for row in rows}
    first = {name: group.first for group in groups for name in group.names[1:]}
    script = importlib.resources.files("torchbisect.triage").joinpath("templates/triage.js").read_text("utf-8")
    counts = Counter(row.state for row in rows)
    return template("triage.html.j2", "torchbisect.triage").render(
        digest=Markup(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()),
        script=Markup(script),
        columns=_COLUMNS,
        total=len(rows),
        noun=noun,
        counts=[(state, counts[state]) for state in STATES if counts[state]],
        groups=[
            {
                "members": [_member(name, identities) for name in group.names],
                "reasons": ", ".join(group.reasons),
                "summary": short_line(by_name[group.first].summary, 300),
            }
            for group in groups
        ],
        related=[
            {"members": [_member(name, identities) for name in pair.names], "evidence": _evidence(pair.evidence)}
            for pair in related_issues(rows)
        ],
        rows=[_row(row, identities, first.get(row.name)) for row in rows],
    )


def _member(name: str, identities: Mapping[str, str]) -> dict[str, str]:
    return {"name": one_line(name, 120), "id": identities[name]}


def _evidence(facts: Sequence[str]) -> str:
    return "; ".join(short_line(fact, 160) for fact in facts)


def _row(row: IssueRow, identities: Mapping[str, str], same: str | None) -> dict[str, Any]:
    return {
        **_member(row.name, identities),
        "state": row.state,
        "order": STATES.index(row.state),
        "title": short_line(row.title, 160),
        "url": row.url if _ADDRESS.fullmatch(row.url) else "",
        "report": f"{quote(row.report)}/{files.PAGE}" if row.report else "",
        "what": short_line(row.summary or row.reason, 300),
        "unfinished": short_line(row.unfinished, 300),
        "component": short_line(row.component, 40),
        "torch": short_line(f"{row.torch} ({row.stated} is stated)" if row.stated else row.torch, 80),
        "broke": short_line(row.bad_commit[:12] or row.first_bad, 40),
        "fixed": short_line(row.fix_commit[:12] or row.first_fixed, 40),
        "same": _member(same, identities) if same else None,
        "known": short_line(row.known, 200) if row.state != KNOWN else "",
        "labels": short_line(", ".join(row.labels), 300),
        "seconds": f"{row.seconds:.1f}",
    }


#: The pairs that the table on a terminal names.
_RELATED = 10
_SHOWN = ("mismatch", "flaky", "untestable", "failed", KNOWN)
_STYLES = {"mismatch": "bold red", "flaky": "bold yellow", "failed": "bold magenta", "untestable": "yellow"}


def terminal_table(rows: Sequence[IssueRow], files: Sequence[Path] = ()) -> RenderableType:
    """Return a table of the issues with a finding, by state and duplicates together; then counts and written files."""
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
            Text(
                one_line(
                    "; ".join(filter(None, (row.known, row.summary or row.reason)))
                    if row.state != KNOWN
                    else row.known,
                    160,
                )
            ),
            Text(one_line(row.component, 40)),
            Text(one_line(row.bad_commit[:12] or row.first_bad, 40)),
            Text(one_line(row.fix_commit[:12] or row.first_fixed, 40)),
        )
    counts = Counter(row.state for row in rows)
    words = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    same = sum(len(group.names) - 1 for group in groups)
    if same:
        words.append(f"{same} look like duplicates (=)")
    related = related_issues(rows)
    lines: list[RenderableType] = [Text(f"{len(rows)} issues: " + ", ".join(words))]
    lines += [
        Text(one_line(f"perhaps related: {' and '.join(pair.names)} ({_evidence(pair.evidence)})", 300), "dim")
        for pair in related[:_RELATED]
    ]
    lines += [Text(f"and {len(related) - _RELATED} more on the page", "dim")] if len(related) > _RELATED else []
    lines += [Text(f"written {path}", "dim") for path in files]
    return Group(grid, Text(), *lines) if shown else Group(*lines)
