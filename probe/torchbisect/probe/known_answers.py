"""Answers that are read back from a journal, in which others may have written."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from torchbisect.core.decode import decode, time_from_outside
from torchbisect.core.verdict import Verdict


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the journal keeps it."""
    return {**asdict(verdict), "answer": str(verdict.answer)}


def verdict_from_json(data: Any) -> Verdict:
    """Return a verdict, with a plausible time. Raise ``DecodeError`` if it is none."""
    verdict = decode(Verdict, data)
    return replace(verdict, seconds=time_from_outside(verdict.seconds))
