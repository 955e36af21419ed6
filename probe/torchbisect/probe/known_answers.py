"""Answers that are read back from a journal, in which others may have written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchbisect.core.decode import DecodeError, decode, time_from_outside
from torchbisect.core.verdict import Verdict


def verdict_from_json(data: Any) -> Verdict:
    """Return a verdict, with a plausible time. Raise ``DecodeError`` if it is none."""
    verdict = decode(Verdict, data)
    return replace(verdict, seconds=time_from_outside(verdict.seconds))


def rate_from_json(data: Any) -> tuple[float]:
    """Return a rate. Raise ``DecodeError`` if it is none."""
    (rate,) = decode(tuple[float], data)
    if not 0 <= rate <= 1:
        raise DecodeError(f"a rate should lie between 0 and 1, not {rate:g}")
    return (rate,)
