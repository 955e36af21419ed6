"""A copy of a report for others' eyes: every text in it scrubbed."""

from __future__ import annotations

from typing import Any

from torchbisect.core.scrub import Scrubber, scrubber
from torchbisect.reports.model.report import Report
from torchbisect.reports.sanitize import in_one_folder, without_machine_paths


def scrubbed(report: Report) -> Report:
    """Return the report as it may be shown.

    Scripts lose secrets and home folders only, and a notice says so. In every other text absolute paths are cut down to
    the part that is the same on every machine. A second call changes nothing.
    """
    data = report.to_json()
    shown: dict[str, Any] = _scrubbed(data, "", scrubber(report.arguments))
    changed = [name for name in ("minimal", "original") if data[name] and data[name]["source"] != shown[name]["source"]]
    notices = [_NOTICES[name] for name in changed if _NOTICES[name] not in shown["notices"]]
    return Report.from_json({**shown, "notices": [*shown["notices"], *notices]})


_NOTICES = {
    "minimal": "minimal.py is as it was run; the copy in this report has **** or ~ for a secret or a home folder",
    "original": "the original script in this report has **** or ~ for a secret or a home folder",
}


def _scrubbed(value: Any, name: str, scrubber: Scrubber) -> Any:
    """Return a JSON value with every text scrubbed; ``name`` is the key that it has in its object."""
    if isinstance(value, dict):
        return {key: _scrubbed(item, key, scrubber) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrubbed(item, name, scrubber) for item in value]
    if not isinstance(value, str):
        return value
    if name == "source":
        return scrubber(value)
    shorten = in_one_folder if name == "command" else without_machine_paths
    return shorten(scrubber.secrets(value))
