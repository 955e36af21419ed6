"""Read the tasks of workers back from JSON."""

from __future__ import annotations

from typing import Any

from torchbisect.triage.jobs import IssueTask
from torchbisect.triage.ledger.questions import WatchTask


def task_from_json(data: dict[str, Any]) -> IssueTask | WatchTask:
    """Read the value that a task's ``to_json`` returned, also after a round trip through JSON text."""
    return WatchTask.from_json(data) if "asks" in data else IssueTask.from_json(data)
