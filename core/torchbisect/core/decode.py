"""Read JSON that comes from outside, and turn it into dataclasses.

Answers, journals, pages of an index, issues and reports are written by strangers, by other versions, or by a process
that was killed while it wrote. ``read_json`` bounds what a text may cost before it is parsed. ``decode`` checks every
value against the types of the dataclasses. Both raise ``DecodeError`` and nothing else.

This is not msgspec or cattrs: msgspec reads ``"nan"`` as a float only in a mode that also reads ``"224"`` as an
integer, and cattrs converts between types unless every basic type gets a hook of our own. Neither bounds the depth
or the number of values.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import json
import math
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")


class DecodeError(ValueError):
    """A text that is no JSON, is too large, or does not fit its type; it says where and what is wrong, on one line."""


@dataclass(frozen=True)
class JsonLimits:
    """Limits of a JSON text; the default is far above what torchbisect writes.

    Attributes:
        size: bytes of the text.
        values: values in lists and objects.
        depth: lists and objects inside each other.
        digits: characters of one number.
    """

    size: int = 64 << 20
    values: int = 1_000_000
    depth: int = 100
    digits: int = 40


DEFAULT_LIMITS = JsonLimits()
_LONGEST = 1e9  # seconds, thirty years
_STRUCTURE = b"[]{},"
_NOT_STRUCTURE = bytes(set(range(256)) - set(_STRUCTURE))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0}
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(text: bytes | str, limits: JsonLimits = DEFAULT_LIMITS) -> Any:
    """Return the value of a JSON text, which is UTF-8 if it is given as bytes.

    A number that is none (``NaN``) is read as Python's own ``json`` writes it. A number too large for a float, a key
    that an object has twice, and more of anything than ``limits`` allow are errors. An unpaired surrogate in a string
    becomes its escape, because it could be neither printed nor written to a file.

    Raises:
        DecodeError: the text is not JSON, or exceeds a limit.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > limits.size:
        raise DecodeError(f"it has {len(data)} bytes, and {limits.size} is the limit")
    _check_structure(data, limits)
    try:
        characters = str(data, "utf-8", "surrogatepass" if isinstance(text, str) else "strict")
        value = json.loads(
            characters,
            parse_int=functools.partial(_whole_number, limits.digits),
            parse_float=_float,
            object_pairs_hook=_object,
        )
    except DecodeError:
        raise
    except UnicodeDecodeError as error:
        raise DecodeError(f"it is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise DecodeError(f"it is not JSON ({error.msg}, character {error.pos})") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise DecodeError(f"it can't be read as JSON ({type(error).__name__})") from None
    if b"\\ud" in data or b"\\uD" in data or (isinstance(text, str) and _SURROGATE.search(characters)):
        value = _without_surrogates(value)
    return value


def _check_structure(data: bytes, limits: JsonLimits) -> None:
    """Check depth and number of values by the brackets and commas outside strings, in linear time."""
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    if unescaped.count(b'"') > 4 * limits.values:
        raise DecodeError(f"it has more than {limits.values} values")
    outside = b"".join(unescaped.split(b'"')[::2]).translate(None, _NOT_STRUCTURE)
    if len(outside) > 3 * limits.values:
        raise DecodeError(f"it has more than {limits.values} values")
    if max(itertools.accumulate(map(_STEPS.__getitem__, outside)), default=0) > limits.depth:
        raise DecodeError(f"it has more than {limits.depth} lists and objects inside each other")
    if sum(map(outside.count, (b"[", b"{", b","))) > limits.values:
        raise DecodeError(f"it has more than {limits.values} values")


def _whole_number(digits: int, text: str) -> int:
    if len(text) > digits:
        raise DecodeError(f"a number has more than {digits} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise DecodeError("a number is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise DecodeError("an object has a key twice")
    return value


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def read_object(text: bytes | str, limits: JsonLimits = DEFAULT_LIMITS) -> dict[str, Any]:
    """Return the object of a JSON text. Raises ``DecodeError``, also if the text has another value."""
    value = read_json(text, limits)
    if not isinstance(value, dict):
        raise DecodeError(f"it should be an object, not {_shown(value)}")
    return value


def time_from_outside(seconds: float) -> float:
    """Return a time that another process has told, made plausible: sums and comparisons of such times stay finite."""
    return min(max(seconds, 0.0), _LONGEST)


def decode(kind: type[T], data: Any, path: str = "report") -> T:
    """Decode a dataclass, or another type, from plain values.

    Keys that the dataclass lacks are ignored, since a newer version may write them. Missing keys get their defaults.

    Args:
        kind: the dataclass, or any type that the fields of one may have.
        data: the value that ``read_json`` returned.
        path: the name of ``data`` in error messages; those of its parts are built on it (``report.minimal.bytes``).

    Raises:
        DecodeError: a value is missing or has another type.
    """
    return cast(T, _decoder(cast(Any, kind))(data, path))


_Decoder = Callable[[Any, str], Any]


@functools.cache
def _decoder(hint: Any) -> _Decoder:
    """Return the function that decodes one type."""
    if hint is Any:
        return lambda data, path: data
    if hint is float:
        return _decode_float
    if hint is int:
        return _decode_int
    if hint is type(None):
        return lambda data, path: _expect(data is None, data, path, "null")
    if dataclasses.is_dataclass(hint):
        return functools.partial(_decode_dataclass, cast(type, hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return functools.partial(_decode_enum, hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        some = _decoder(inner)
        return lambda data, path: None if data is None else some(data, path)
    if origin is typing.Literal:
        words = "one of " + ", ".join(map(repr, arguments))
        return lambda data, path: _expect(isinstance(data, str) and data in arguments, data, path, words)
    if origin in (tuple, frozenset, list):
        return functools.partial(_decode_list, origin, arguments)
    if origin is dict:
        return functools.partial(_decode_dict, _decoder(arguments[1]))
    words = _TYPE_NAMES[hint]
    return lambda data, path: _expect(isinstance(data, hint), data, path, words)


_TYPE_NAMES = {str: "a text", bool: "true or false"}


def _decode_list(kind: Callable[[list[Any]], Any], arguments: tuple[Any, ...], data: Any, path: str) -> Any:
    _expect(isinstance(data, (list, tuple)), data, path, "a list")
    if kind is tuple and arguments[1:] != (...,):
        _expect(len(data) == len(arguments), data, path, f"a list of {len(arguments)}")
        decoders = [_decoder(argument) for argument in arguments]
    else:
        decoders = [_decoder(arguments[0])] * len(data)
    return kind([decode(item, f"{path}[{number}]") for number, (decode, item) in enumerate(zip(decoders, data))])


def _decode_dict(item_decoder: _Decoder, data: Any, path: str) -> dict[str, Any]:
    _expect(isinstance(data, dict), data, path, "an object")
    return {str(key): item_decoder(item, f"{path}.{_key(key)}") for key, item in data.items()}


def _decode_float(data: Any, path: str) -> float:
    is_number = isinstance(data, (int, float)) and not isinstance(data, bool)
    _expect(
        (is_number and (isinstance(data, int) or math.isfinite(data))) or data in ("nan", "inf", "-inf"),
        data,
        path,
        "a number",
    )
    try:
        return float(data)
    except OverflowError:
        raise DecodeError(f"{path} should be a number, and a float cannot hold one this large") from None


def _decode_int(data: Any, path: str) -> int:
    return cast(int, _expect(isinstance(data, int) and not isinstance(data, bool), data, path, "a whole number"))


def _decode_enum(kind: type[enum.Enum], data: Any, path: str) -> Any:
    try:
        return kind(data)
    except ValueError:
        raise DecodeError(
            f"{path} should be one of {', '.join(str(one) for one in kind)}, not {_shown(data)}"
        ) from None


def _decode_dataclass(kind: type, data: Any, path: str) -> Any:
    _expect(isinstance(data, dict), data, path, "an object")
    values = {}
    for name, decoder, required in _fields(kind):
        if name in data:
            values[name] = decoder(data[name], f"{path}.{name}")
        elif required:
            raise DecodeError(f"{path} lacks {name!r}")
    return kind(**values)


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, _Decoder, bool], ...]:
    """Return name, decoder, and True for required, of each field; late, since a dataclass may contain its own kind."""
    hints, missing = typing.get_type_hints(kind), dataclasses.MISSING
    return tuple(
        (field.name, _decoder(hints[field.name]), field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(kind)
    )


def _key(key: Any) -> str:
    text = str(key)
    return text if len(text) <= 40 and text.isidentifier() else _shown(text)


def _expect(holds: bool, data: Any, path: str, expected: str) -> Any:
    if not holds:
        raise DecodeError(f"{path} should be {expected}, not {_shown(data)}")
    return data


def _shown(value: Any) -> str:
    """Return a value for an error message: printable, short, and at a cost that does not grow with the value."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "...")
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    shown = repr(value)
    return shown if len(shown) < 60 else shown[:57] + "..."
