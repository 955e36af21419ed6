"""The verdict on a script that may show the mismatch, and the kinds of mismatch."""

from __future__ import annotations

from dataclasses import dataclass

from torchbisect.core.text_enum import TextEnum


class Answer(TextEnum):
    """Possible answers; only ``SAME`` and ``NONE`` are evidence."""

    SAME = "same"
    NONE = "none"
    OTHER = "other"
    UNTESTABLE = "untestable"


@dataclass(frozen=True)
class Verdict:
    """An answer, one line that describes the observation, and the seconds that the question took.

    ``reason`` is a short name for ``UNTESTABLE`` and ``OTHER`` (``import-failed``, ``timed-out``), else ``None``.
    ``place`` is where a ``SAME`` was seen, if that is known: ``call 0 output[1]``, ``backward 2 weight.grad``.
    """

    answer: Answer
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0
    place: str = ""

    @property
    def same(self) -> bool:
        """True if this mismatch was seen."""
        return self.answer is Answer.SAME


class MismatchKind(TextEnum):
    """The kinds of mismatch, in the order of precedence in which a run with several of them is named."""

    CRASH = "crash"
    HANG = "hang"
    RAISES = "raises"
    RAISES_DIFFERENTLY = "raises-differently"
    MISSING_RAISE = "missing-raise"
    METADATA = "metadata"
    VALUES = "values"
    MUTATION = "mutation"
    ALIASING = "aliasing"
    GRADIENTS = "gradients"
    HOOKS = "hooks"
    SIDE_EFFECTS = "side-effects"
    SLOW = "slow"
    COMMAND = "command"
