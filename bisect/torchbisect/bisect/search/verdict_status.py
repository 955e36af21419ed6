"""What a verdict about the script means for a search over builds."""

from __future__ import annotations

from torchbisect.bisect.search.evidence import Finding, Status
from torchbisect.core.verdict import Answer, Verdict


def finding_of(verdict: Verdict) -> Finding:
    """``same`` is bad, ``none`` is good; another mismatch, or no answer, is no evidence and keeps its reason."""
    if verdict.answer is Answer.SAME:
        return Finding(Status.BAD, None, verdict.detail, verdict.seconds)
    if verdict.answer is Answer.NONE:
        return Finding(Status.GOOD, None, verdict.detail, verdict.seconds)
    fallback = "other-mismatch" if verdict.answer is Answer.OTHER else "untestable"
    return Finding(Status.UNTESTABLE, verdict.reason or fallback, verdict.detail, verdict.seconds)
