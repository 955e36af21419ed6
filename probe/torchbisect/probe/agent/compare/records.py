"""A run's tape, read: events in their order, tensors by their bytes. Nothing that a child wrote is trusted."""

from __future__ import annotations

import warnings
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from ..capture.snapshot import sample_step
from ..capture.tape import Entry

Node = List[Any]
_DTYPES = {str(item): item for item in vars(torch).values() if isinstance(item, torch.dtype)}


class Side:
    """One entry of one run, with its tensors."""

    def __init__(self, entry: Entry) -> None:
        self.facts = entry.facts
        self.tensors: List[Dict[str, Any]] = list(entry.facts.get("tensors") or ())
        self._data = entry.data

    def elements(self, meta: Dict[str, Any], step: int = 1) -> Optional[torch.Tensor]:
        """The recorded elements of a tensor, flat, every ``step``-th; ``None`` if there are none."""
        dtype = _DTYPES.get(meta.get("dtype", ""))
        where = meta.get("data")
        if dtype is None or not where:
            return None
        offset, length = where
        if length == 0:
            return torch.empty(0, dtype=dtype)
        if offset < 0 or offset + length > len(self._data):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the bytes are not writable, and nobody writes to them
            try:
                flat = torch.frombuffer(bytearray(self._data[offset : offset + length]), dtype=dtype)
            except (ValueError, RuntimeError, TypeError):
                return None
        return flat if meta.get("step") == step or step == 1 else flat[::step]


class Pair(NamedTuple):
    """The same moment in two runs, and in the reference where there is one."""

    eager: Side
    compiled: Side
    reference: Optional[Side]


def events(entries: List[Entry]) -> List[Entry]:
    """Calls and backward runs that happened outside of calls, in their order."""
    return [entry for entry in entries if _kind(entry) == "call" or (_kind(entry) == "backward" and _outside(entry))]


def inner_events(entries: List[Entry]) -> Dict[int, List[Entry]]:
    """Backward runs inside calls, by the number of the call."""
    found: Dict[int, List[Entry]] = {}
    for entry in entries:
        if _kind(entry) == "backward" and not _outside(entry):
            found.setdefault(entry.facts["inside"], []).append(entry)
    return found


def last_word(entries: List[Entry]) -> Optional[Entry]:
    """The entry of the script's end, if it came to one."""
    return next((entry for entry in reversed(entries) if _kind(entry) == "end"), None)


def _kind(entry: Entry) -> str:
    return str(entry.facts.get("e"))


def _outside(entry: Entry) -> bool:
    return entry.facts.get("inside") is None


def common_step(first: Dict[str, Any], second: Dict[str, Any]) -> int:
    """The sampling step at which both tensors can be read: 1 if both are whole."""
    if "step" not in first and "step" not in second:
        return 1
    numel = 1
    for size in first["shape"]:
        numel *= size
    return sample_step(numel)


def tensors_in(node: Node, place: str) -> Iterator[Tuple[str, int]]:
    """Every tensor of a node, with its place."""
    if node[0] == "T":
        yield place, node[1]
    elif node[0] == "L":
        for index, item in enumerate(node[2]):
            yield from tensors_in(item, "{}[{}]".format(place, index))
    elif node[0] in "DOM":
        for name, item in node[2]:
            yield from tensors_in(item, place + ("[{!r}]" if node[0] == "D" else ".{}").format(name))
