"""What can go wrong that is not a verdict: one root, one class for each thing a caller does differently.

The exit code lies with the error, so that the command line has nothing to decide.
"""

from __future__ import annotations


class TorchbisectError(Exception):
    """The root of every error that torchbisect raises on purpose; its text is one clear line for the user."""

    exit_code = 5


class InputError(TorchbisectError):
    """What the user gave can't be used: the line says what is wrong, where, and what to do."""

    exit_code = 2


class MachineError(TorchbisectError):
    """This machine could not do its part: no disk, no network, no installable torch."""

    exit_code = 5


class DiskFull(MachineError):
    """There is no room for what has to be written."""


class IndexUnreachable(MachineError):
    """A package index did not answer, also after the retries."""


class InstallFailed(TorchbisectError):
    """A build could not be installed here.

    Attributes:
        reason: a short named reason in the words of ``docs/reference/exit-codes.md``, such as ``no-wheel``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
