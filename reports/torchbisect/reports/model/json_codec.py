"""Encode frozen dataclasses as plain JSON values, and decode them with checks.

Other versions of torchbisect and other programs write reports too. So decoding checks every value against the types
of the dataclasses. It ignores keys that a newer version added, and gives missing keys their defaults.

This is not msgspec or cattrs: msgspec reads ``"nan"`` as a float only in a mode that also reads ``"224"`` as an
integer, and cattrs converts between types unless every basic type gets a hook of our own.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")


class DecodeError(ValueError):
    """A JSON value that does not fit its type; the text says where it is and what is wrong."""


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


def decode(kind: type[T], data: Any, path: str = "report") -> T:
    """Decode a dataclass from plain values.

    Args:
        kind: the dataclass.
        data: the value that ``json.loads`` returned.
        path: the name of ``data`` in error messages; those of its parts are built on it (``report.minimal.bytes``).

    Raises:
        DecodeError: a value is missing or has another type.
    """
    return cast(T, _decode(kind, data, path))


@functools.cache
def _type_hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(hint: Any, data: Any, path: str) -> Any:
    if hint is Any:
        return data
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(cast(type, hint), data, path)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in arguments:
            return None
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return _decode(inner, data, path)
    if origin is typing.Literal:
        return _expect(data in arguments, data, path, "one of " + ", ".join(map(repr, arguments)))
    if origin is tuple:
        _expect(isinstance(data, (list, tuple)), data, path, "a list")
        return tuple(_decode(arguments[0], item, f"{path}[{number}]") for number, item in enumerate(data))
    if origin is dict:
        _expect(isinstance(data, dict), data, path, "an object")
        return {str(key): _decode(arguments[1], item, f"{path}.{key}") for key, item in data.items()}
    if hint is float:
        return _decode_float(data, path)
    if hint is int:
        return _expect(isinstance(data, int) and not isinstance(data, bool), data, path, "a whole number")
    return _expect(isinstance(data, hint), data, path, _TYPE_NAMES.get(hint, hint.__name__))


_TYPE_NAMES = {str: "a text", bool: "true or false"}


def _decode_float(data: Any, path: str) -> float:
    is_number = isinstance(data, (int, float)) and not isinstance(data, bool)
    _expect(is_number or data in ("nan", "inf", "-inf"), data, path, "a number")
    try:
        return float(data)
    except OverflowError:
        raise DecodeError(f"{path} should be a number, and a float cannot hold one this large") from None


def _decode_dataclass(kind: type, data: Any, path: str) -> Any:
    _expect(isinstance(data, dict), data, path, "an object")
    values = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            values[field.name] = _decode(_type_hints(kind)[field.name], data[field.name], f"{path}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise DecodeError(f"{path} lacks {field.name!r}")
    return kind(**values)


def _expect(holds: bool, data: Any, path: str, expected: str) -> Any:
    if not holds:
        shown = repr(data)
        raise DecodeError(f"{path} should be {expected}, not {shown if len(shown) < 60 else shown[:57] + '...'}")
    return data
