"""Frozen dataclasses to plain JSON values and back, checked on the way in.

A report is read again by other versions of torchbisect and by other programs, so what is read is checked against the
types that the dataclasses state; what a newer version added is passed over, and what it left out takes its default.
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


class ShapeError(ValueError):
    """A JSON value hasn't the shape that was asked for; the text says where and what is wrong."""


def encode(value: Any) -> Any:
    """A dataclass, or any nest of them, as plain values that JSON can hold.

    A number that JSON has no word for is written as a string: ``"nan"``, ``"inf"``, ``"-inf"``.
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


def decode(kind: type[T], data: Any, where: str = "report") -> T:
    """Read a dataclass of type ``kind`` from plain values.

    Args:
        kind: the dataclass.
        data: what ``json.loads`` gave.
        where: how the place is called in an error's text.

    Raises:
        ShapeError: something is missing or of another type.
    """
    return cast(T, _decode(kind, data, where))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(hint: Any, data: Any, where: str) -> Any:
    if hint is Any:
        return data
    if dataclasses.is_dataclass(hint):
        return _dataclass(cast(type, hint), data, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in arguments:
            return None
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return _decode(inner, data, where)
    if origin is typing.Literal:
        return _expect(data in arguments, data, where, "one of " + ", ".join(map(repr, arguments)))
    if origin is tuple:
        _expect(isinstance(data, (list, tuple)), data, where, "a list")
        return tuple(_decode(arguments[0], item, f"{where}[{number}]") for number, item in enumerate(data))
    if origin is dict:
        _expect(isinstance(data, dict), data, where, "an object")
        return {str(key): _decode(arguments[1], item, f"{where}.{key}") for key, item in data.items()}
    if hint is float:
        number = isinstance(data, (int, float)) and not isinstance(data, bool)
        return float(_expect(number or data in ("nan", "inf", "-inf"), data, where, "a number"))
    if hint is int:
        return _expect(isinstance(data, int) and not isinstance(data, bool), data, where, "a whole number")
    return _expect(isinstance(data, hint), data, where, _WORDS.get(hint, hint.__name__))


_WORDS = {str: "a text", bool: "true or false"}


def _dataclass(kind: type, data: Any, where: str) -> Any:
    _expect(isinstance(data, dict), data, where, "an object")
    values = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            values[field.name] = _decode(_hints(kind)[field.name], data[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ShapeError(f"{where} lacks {field.name!r}")
    return kind(**values)


def _expect(holds: bool, data: Any, where: str, wanted: str) -> Any:
    if not holds:
        shown = repr(data)
        raise ShapeError(f"{where} should be {wanted}, not {shown if len(shown) < 60 else shown[:57] + '...'}")
    return data
