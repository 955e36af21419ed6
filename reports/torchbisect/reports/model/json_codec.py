"""Encode frozen dataclasses as plain JSON values; ``torchbisect.core.decode`` reads them back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any


def encode(value: Any) -> Any:
    """Return a dataclass, or any nest of them, as plain values that JSON can hold.

    JSON has no word for three numbers. They are written as strings: ``"nan"``, ``"inf"``, ``"-inf"``.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, int):
        return int(value)
    return str(value)
