"""The hidden lines by which a machine finds a report again, and knows which bug it is about."""

from __future__ import annotations

import hashlib
import re

FIRST_LINE = "<!-- torchbisect:report -->"
_SIGNATURE = re.compile(r"^<!-- torchbisect:signature ([0-9a-z]{1,64}) -->$")


def marker(fingerprint: str) -> str:
    """The lines that stand first in a report: one that never changes, then one that names the signature."""
    if not re.fullmatch(r"[0-9a-z]{1,64}", fingerprint):
        fingerprint = hashlib.sha256(fingerprint.encode("utf-8", "replace")).hexdigest()[:24]
    return f"{FIRST_LINE}\n<!-- torchbisect:signature {fingerprint} -->"


def is_report(text: str) -> bool:
    """Whether a comment is a report of this tool: only the very first line counts, so that a quotation doesn't."""
    return text.startswith(FIRST_LINE)


def read_marker(text: str) -> str | None:
    """The fingerprint of the signature that a report is about, or ``None`` if the text isn't a report."""
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != FIRST_LINE:
        return None
    found = _SIGNATURE.match(lines[1])
    return found.group(1) if found else None
