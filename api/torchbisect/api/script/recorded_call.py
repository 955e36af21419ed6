"""A call of a compiled callable, as it is about to be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RecordedCall:
    """A call of a compiled callable that is about to be made.

    Attributes:
        number: its number among the recorded calls of the run.
        target: the function or module that was compiled.
        options: the options of its ``torch.compile``.
    """

    number: int
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: dict[str, Any]
