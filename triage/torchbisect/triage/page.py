"""Render ``triage.html``: one self-contained page that sorts and filters issues and links to their reports."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from torchbisect.reports import files
from torchbisect.reports.escape import one_line
from torchbisect.reports.render.html import template
from torchbisect.reports.scrub import without_machine_paths
from torchbisect.triage.duplicate_groups import DuplicateGroup, duplicate_groups
from torchbisect.triage.issue_row import STATES, IssueRow

_COLUMNS = ("Issue", "State", "What", "Component", "torch", "Broke in", "Fixed in", "Same as", "Seconds")
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+/[\w./#?=&%+~-]*")


def render(rows: Sequence[IssueRow]) -> str:
    """Render the page of these issues, in their order. The page's policy allows its own script and no other."""
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
        counts=[(state, counts[state]) for state in STATES if counts[state]],
        groups=[_group(group, identities, by_name[group.first]) for group in groups],
        rows=[_row(row, identities, first.get(row.name)) for row in rows],
    )


def _line(text: str, limit: int = 300) -> str:
    return without_machine_paths(one_line(text, limit))


def _member(name: str, identities: Mapping[str, str]) -> dict[str, str]:
    return {"name": one_line(name, 120), "id": identities[name]}


def _group(group: DuplicateGroup, identities: Mapping[str, str], row: IssueRow) -> dict[str, Any]:
    members = [_member(name, identities) for name in group.names]
    return {"members": members, "reasons": ", ".join(group.reasons), "summary": _line(row.summary)}


def _row(row: IssueRow, identities: Mapping[str, str], same: str | None) -> dict[str, Any]:
    return {
        **_member(row.name, identities),
        "state": row.state,
        "order": STATES.index(row.state),
        "title": _line(row.title, 160),
        "url": row.url if _ADDRESS.fullmatch(row.url) else "",
        "report": f"{quote(row.report)}/{files.PAGE}" if row.report else "",
        "what": _line(row.summary or row.reason),
        "unfinished": _line(row.unfinished),
        "component": _line(row.component, 40),
        "torch": _line(row.torch, 40),
        "broke": _line(row.bad_commit[:12] or row.first_bad, 40),
        "fixed": _line(row.fix_commit[:12] or row.first_fixed, 40),
        "same": _member(same, identities) if same else None,
        "labels": _line(", ".join(row.labels)),
        "seconds": f"{row.seconds:.1f}",
    }
