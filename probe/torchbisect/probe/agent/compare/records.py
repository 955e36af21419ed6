"""Read a run's tape: its events in order, and the tensors from their bytes. Data from a child is never trusted."""

from __future__ import annotations

import warnings
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from ..capture.snapshot import Node, sample_step
from ..capture.tape import Entry

_DTYPES = {str(item): item for item in vars(torch).values() if isinstance(item, torch.dtype)}


class EventSide:
    """One event of one run, with its tensors."""

    def __init__(self, entry: Entry) -> None:
        self.facts = entry.facts
        self.tensors: List[Dict[str, Any]] = list(entry.facts.get("tensors") or ())
        self._data = entry.data

    def elements(self, meta: Dict[str, Any], step: int = 1) -> Optional[torch.Tensor]:
        """Return every ``step``-th recorded element of a tensor as a flat tensor; ``None`` if none were recorded."""
        dtype = _DTYPES.get(meta.get("dtype", ""))
        location = meta.get("data")
        if dtype is None or not location:
            return None
        offset, length = location
        if length == 0:
            return torch.empty(0, dtype=dtype)
        if offset < 0 or offset + length > len(self._data):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of read-only memory; nothing writes to this tensor
            try:
                flat = torch.frombuffer(bytearray(self._data[offset : offset + length]), dtype=dtype)
            except (ValueError, RuntimeError, TypeError):
                return None
        return flat if meta.get("step") == step or step == 1 else flat[::step]


class EventPair(NamedTuple):
    """The same event in the eager and the compiled run, and in the double-precision run if there is one."""

    eager: EventSide
    compiled: EventSide
    reference: Optional[EventSide]


def top_level_events(entries: List[Entry]) -> List[Entry]:
    """Return the calls, and the backward runs that happened outside of calls, in order."""
    return [entry for entry in entries if _type(entry) == "call" or (_type(entry) == "backward" and _is_outside(entry))]


def backwards_inside_calls(entries: List[Entry]) -> Dict[int, List[Entry]]:
    """Return the backward runs that happened inside calls, by the number of the call."""
    found: Dict[int, List[Entry]] = {}
    for entry in entries:
        if _type(entry) == "backward" and not _is_outside(entry):
            found.setdefault(entry.facts["inside"], []).append(entry)
    return found


def end_entry(entries: List[Entry]) -> Optional[Entry]:
    """Return the entry of the script's end; ``None`` if the run was cut short."""
    return next((entry for entry in reversed(entries) if _type(entry) == "end"), None)


def _type(entry: Entry) -> str:
    return str(entry.facts.get("e"))


def _is_outside(entry: Entry) -> bool:
    return entry.facts.get("inside") is None


def common_step(first: Dict[str, Any], second: Dict[str, Any]) -> int:
    """Return the sampling step at which both tensors can be read: 1 if both are recorded whole."""
    if "step" not in first and "step" not in second:
        return 1
    numel = 1
    for size in first["shape"]:
        numel *= size
    return sample_step(numel)


def tensors_in(node: Node, place: str) -> Iterator[Tuple[str, int]]:
    """Yield the place and the index of every tensor in a node."""
    if node[0] == "T":
        yield place, node[1]
    elif node[0] == "L":
        for index, item in enumerate(node[2]):
            yield from tensors_in(item, "{}[{}]".format(place, index))
    elif node[0] in "DOM":
        for name, item in node[2]:
            yield from tensors_in(item, place + ("[{}]" if node[0] == "D" else ".{}").format(name))
