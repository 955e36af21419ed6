"""Write what several arguments share only once, so that what changes one of them changes the others too."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

from ..capture import raw_tensor
from .value_source import Expression


def with_shared_storage(values: Sequence[Any], texts: Sequence[Optional[Expression]]) -> List[Optional[Expression]]:
    """Return the texts, with those of tensors of one storage in terms of the largest, named by ``:=`` at the first.

    A container that is given several times is named in the same way. A storage of which no tensor is the whole, from
    its start and without gaps, is left as it is.
    """
    found = list(texts)
    try:
        with raw_tensor.without_dispatch():
            groups = _groups(values, _storage_of)
            for number, places in enumerate(groups):
                _write_group(values, found, places, "shared{}".format(number))
            for number, places in enumerate(_groups(values, _container_of), len(groups)):
                _write_container(found, places, "shared{}".format(number))
    except Exception:  # a tensor without storage, or a subclass with its own rules
        return list(texts)
    return found


def _groups(values: Sequence[Any], key_of: Callable[[Any], Optional[int]]) -> List[List[int]]:
    """Return the positions of the values that have one key, for each key of several."""
    places: Dict[int, List[int]] = {}
    for place, value in enumerate(values):
        key = key_of(value)
        if key is not None:
            places.setdefault(key, []).append(place)
    return [group for group in places.values() if len(group) > 1]


def _storage_of(value: Any) -> Optional[int]:
    """Return the key of a tensor's storage; ``None`` for what has none."""
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel():
        return raw_tensor.storage_key(value)
    return None


def _container_of(value: Any) -> Optional[int]:
    """Return the key of a container that can change; ``None`` for any other value."""
    return id(value) if isinstance(value, (list, dict, set, bytearray, collections.deque)) else None


def _write_container(texts: List[Optional[Expression]], places: List[int], name: str) -> None:
    first = texts[places[0]]
    if first is not None:
        for place in places:
            texts[place] = Expression("({} := {})".format(name, first.text) if place == places[0] else name, False)


def _write_group(values: Sequence[Any], texts: List[Optional[Expression]], places: List[int], name: str) -> None:
    whole = max(places, key=lambda place: values[place].numel())
    base, text = values[whole], texts[whole]
    same_type = all(values[place].dtype == base.dtype for place in places)
    if text is None or not same_type or base.storage_offset() or not base.is_contiguous():
        return
    for place in places:
        named = name if place != places[0] else "({} := {})".format(name, text.text)
        texts[place] = Expression(named + _view(values[place], base), False)


def _view(value: torch.Tensor, base: torch.Tensor) -> str:
    """Return what has to follow the base's name to give a view of it with the same elements."""
    size, stride, offset = tuple(value.size()), tuple(value.stride()), value.storage_offset()
    if (size, stride, offset) == (tuple(base.size()), tuple(base.stride()), 0):
        return ""
    if base.dim() == value.dim() == 1 and stride == (1,):
        end = "" if offset + size[0] == base.numel() else str(offset + size[0])
        return "[{}:{}]".format(offset or "", end)
    return ".as_strided({}, {}, {})".format(size, stride, offset)
