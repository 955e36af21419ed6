"""The kinds of mismatch: in what a compiled run can differ from an eager one."""

from __future__ import annotations

import enum


class MismatchKind(str, enum.Enum):
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

    def __str__(self) -> str:
        return self.value
