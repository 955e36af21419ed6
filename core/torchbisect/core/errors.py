"""Exit codes of the commands, and the errors that are not verdicts: one class for each reaction of a caller."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """Exit code of a command, as ``docs/reference/exit-codes.md`` explains it."""

    FINISHED = 0
    NO_MISMATCH = 1
    INPUT = 2
    PARTIAL = 3
    FLAKY = 4
    MACHINE = 5
    UNTESTABLE = 6
    INTERRUPTED = 130


class TorchbisectError(Exception):
    """Root of every error raised on purpose; its text says what happened, where, and what to do next."""

    exit_code = Exit.MACHINE


class InputError(TorchbisectError):
    """The user gave something that cannot be used."""

    exit_code = Exit.INPUT


class MachineError(TorchbisectError):
    """This machine could not do its part: no disk, no network, no installable torch."""

    exit_code = Exit.MACHINE


class DiskFull(MachineError):
    """The disk has no room for what has to be written."""


class IndexUnreachable(MachineError):
    """A package index did not answer, even after retries."""


class InstallFailed(TorchbisectError):
    """A build could not be installed here, for a short named reason from ``docs/reference/exit-codes.md``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
