"""Exit codes of the commands, as ``docs/reference/exit-codes.md`` explains them."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """Exit code of a command."""

    FINISHED = 0
    NO_MISMATCH = 1
    INPUT = 2
    PARTIAL = 3
    FLAKY = 4
    MACHINE = 5
    INTERRUPTED = 130
