"""The answer to the one question."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Answer(str, enum.Enum):
    """What an ask can come to; only ``SAME`` and ``NONE`` are evidence."""

    SAME = "same"
    NONE = "none"
    OTHER = "other"
    UNTESTABLE = "untestable"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Verdict:
    """An answer, and why.

    Attributes:
        answer: the answer.
        reason: for ``UNTESTABLE`` and ``OTHER`` a short named reason (``import-failed``, ``timed-out``); else ``None``.
        detail: one line in words: what was seen.
        seconds: what it took.
    """

    answer: Answer
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0

    @property
    def same(self) -> bool:
        """Whether this mismatch was seen."""
        return self.answer is Answer.SAME
