"""Hidden first lines of ``report.md``: they identify the comment and the bug for programs that read it."""

from __future__ import annotations

import hashlib
import re

FIRST_LINE = "<!-- torchbisect:report -->"
_FINGERPRINT = re.compile(r"[0-9a-z]{1,64}")


def marker(fingerprint: str) -> str:
    """Return the two first lines of a report: a constant one, then one with the fingerprint of the signature."""
    if not _FINGERPRINT.fullmatch(fingerprint):
        fingerprint = hashlib.sha256(fingerprint.encode("utf-8", "replace")).hexdigest()[:24]
    return f"{FIRST_LINE}\n<!-- torchbisect:signature {fingerprint} -->"
