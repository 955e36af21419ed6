"""The tape: what a child has to say, in memory that it shares with the agent.

A run may end at any instant, by a signal or by ``os._exit``, and a script may close every file descriptor it finds. So
a child doesn't send its record at the end through a pipe: it lays down one entry after the other in an anonymous shared
mapping made before the fork. What was laid down stays, whatever becomes of the child.
"""

from __future__ import annotations

import json
import mmap
import struct
from typing import Any, Dict, List, NamedTuple, Sequence

# Bound now: a script may replace ``json.dumps`` in the module, and the child still has to speak afterwards.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode

_HEADER = struct.Struct("<QQ")
_ENTRY = struct.Struct("<QQ")


class Entry(NamedTuple):
    """One thing that happened in a run, with the bytes of the tensors it speaks of."""

    facts: Dict[str, Any]
    data: bytes


class Tape:
    """An append-only sequence of entries in memory shared with children.

    The memory is reserved and not used: a page costs nothing until something is written on it.
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
    def lost(self) -> int:
        """How many entries found no room."""
        lost: int = _HEADER.unpack_from(self._map, 0)[1]
        return lost

    def append(self, facts: Dict[str, Any], chunks: Sequence[bytes] = ()) -> bool:
        """Lay down an entry; the entry counts only once it is whole. False if there is no room for it."""
        text = _encode(facts).encode("ascii")
        length = sum(len(chunk) for chunk in chunks)
        start, lost = _HEADER.unpack_from(self._map, 0)
        end = start + _ENTRY.size + len(text) + length
        if end > self.size:
            _HEADER.pack_into(self._map, 0, start, lost + 1)
            return False
        _ENTRY.pack_into(self._map, start, len(text), length)
        at = start + _ENTRY.size
        for chunk in (text, *chunks):
            self._map[at : at + len(chunk)] = chunk
            at += len(chunk)
        _HEADER.pack_into(self._map, 0, end, lost)
        return True

    def entries(self) -> List[Entry]:
        """What was laid down so far. Stops at the first entry that makes no sense: a script can write here too."""
        found = []
        at, used = _HEADER.size, min(self.used, self.size)
        while at + _ENTRY.size <= used:
            words, length = _ENTRY.unpack_from(self._map, at)
            at += _ENTRY.size
            if at + words + length > used:
                break
            try:
                facts = _decode(self._map[at : at + words].decode("ascii"))
            except ValueError:
                break
            if not isinstance(facts, dict):
                break
            found.append(Entry(facts, self._map[at + words : at + words + length]))
            at += words + length
        return found

    def close(self) -> None:
        """Give the memory back."""
        self._map.close()
