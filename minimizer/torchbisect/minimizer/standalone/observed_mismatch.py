"""The parts of a mismatch that an assertion is derived from."""

from __future__ import annotations

from typing import Protocol

from torchbisect.core.verdict import MismatchKind

FLAGS = ("requires_grad", "is_leaf", "dtype", "shape", "stride", "device", "layout", "is_contiguous")
"""Attributes of a tensor that a mismatch may name."""
_METHODS = frozenset({"stride", "is_contiguous"})


class ObservedMismatch(Protocol):
    """A mismatch as the probe reports it."""

    @property
    def kind(self) -> MismatchKind:
        """The kind of mismatch."""

    @property
    def place(self) -> str:
        """The place of the differing value: ``call 0 output[1]``, ``global loss``."""

    @property
    def attribute(self) -> str:
        """The attribute that differs there."""

    @property
    def eager(self) -> str:
        """The value of the eager run, in a few words."""

    @property
    def compiled(self) -> str:
        """The value of the compiled run, in a few words."""


def read_flag(text: str, flag: str) -> str:
    """Return the code that reads one of the ``FLAGS`` of an expression."""
    return f"{text}.{flag}()" if flag in _METHODS else f"{text}.{flag}"
