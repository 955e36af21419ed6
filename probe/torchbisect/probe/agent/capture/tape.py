"""The tape: an append-only log in memory that a child shares with the agent.

A run can end at any instant, by a signal or by ``os._exit``, and a script can close every file descriptor. A record
sent through a pipe at the end would then be lost. The child therefore appends each entry at once to an anonymous shared
mapping created before the fork. Entries stay readable after the child has ended.
"""

from __future__ import annotations

import json
import mmap
import struct
from typing import Any, Dict, List, NamedTuple, Sequence

# Bound at import: a script may replace ``json.dumps`` in the module, and the child must still be able to record.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode

_HEADER = struct.Struct("<QQ")  # the end of the last entry, the number of dropped entries
_ENTRY = struct.Struct("<QQ")  # the length of the JSON text, the length of the data


class Entry(NamedTuple):
    """One event of a run: its JSON facts and the bytes of the tensors that it mentions."""

    facts: Dict[str, Any]
    data: bytes


class Tape:
    """An append-only sequence of entries in memory shared with children.

    The memory is only reserved: the system allocates a page when something is written on it.

    Args:
        size: bytes to reserve.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._map = mmap.mmap(-1, size)
        _HEADER.pack_into(self._map, 0, _HEADER.size, 0)

    @property
    def used(self) -> int:
        """Bytes that hold entries."""
        used: int = _HEADER.unpack_from(self._map, 0)[0]
        return used

    @property
    def dropped(self) -> int:
        """Number of entries that did not fit."""
        dropped: int = _HEADER.unpack_from(self._map, 0)[1]
        return dropped

    def append(self, facts: Dict[str, Any], chunks: Sequence[bytes] = ()) -> bool:
        """Append an entry, which counts only once it is complete. Return False if it does not fit."""
        text = _encode(facts).encode("ascii")
        length = sum(len(chunk) for chunk in chunks)
        start, dropped = _HEADER.unpack_from(self._map, 0)
        end = start + _ENTRY.size + len(text) + length
        if end > self.size:
            _HEADER.pack_into(self._map, 0, start, dropped + 1)
            return False
        _ENTRY.pack_into(self._map, start, len(text), length)
        at = start + _ENTRY.size
        for chunk in (text, *chunks):
            self._map[at : at + len(chunk)] = chunk
            at += len(chunk)
        _HEADER.pack_into(self._map, 0, end, dropped)
        return True

    def entries(self) -> List[Entry]:
        """Return all entries up to the first malformed one, since a script can write to this memory too."""
        found = []
        at, used = _HEADER.size, min(self.used, self.size)
        while at + _ENTRY.size <= used:
            text_length, data_length = _ENTRY.unpack_from(self._map, at)
            at += _ENTRY.size
            if at + text_length + data_length > used:
                break
            try:
                facts = _decode(self._map[at : at + text_length].decode("ascii"))
            except (ValueError, RecursionError):
                break
            if not isinstance(facts, dict):
                break
            found.append(Entry(facts, self._map[at + text_length : at + text_length + data_length]))
            at += text_length + data_length
        return found

    def close(self) -> None:
        """Release the memory."""
        self._map.close()
