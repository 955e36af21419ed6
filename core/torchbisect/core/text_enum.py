"""The base of enumerations whose members are texts in reports, journals and messages."""

from __future__ import annotations

import enum


class TextEnum(str, enum.Enum):
    """An enumeration of texts; ``str`` and formatting give the text, as ``enum.StrEnum`` does from Python 3.11 on."""

    def __str__(self) -> str:
        return str(self.value)
