"""Capture an output stream of a child, with its middle part dropped if it is long."""

from __future__ import annotations

import os
import select

TAIL_BYTES = 64 << 10
_READ_BYTES = 1 << 16


class OutputCapture:
    """The first and the last part of one output stream.

    Args:
        reader: the reading end of a pipe, in non-blocking mode.
        head_bytes: bytes of the first part.

    Attributes:
        is_open: False once the writing end was closed.
    """

    def __init__(self, reader: int, head_bytes: int) -> None:
        self.reader = reader
        self.is_open = True
        self._head_bytes = head_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def read_available(self) -> None:
        """Read one block, if there is one."""
        try:
            block = os.read(self.reader, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            block = b""
        if not block:
            self.is_open = False
            return
        room = self._head_bytes - len(self._head)
        self._head += block[:room]
        self._tail += block[max(room, 0) :]
        if len(self._tail) > 4 * TAIL_BYTES:
            self._dropped += len(self._tail) - TAIL_BYTES
            del self._tail[:-TAIL_BYTES]

    def read_rest(self) -> None:
        """Read what is left without waiting, because an escaped process may hold the writing end open."""
        for _ in range(64):
            if not self.is_open or not select.select([self.reader], [], [], 0)[0]:
                break
            self.read_available()

    def text(self) -> str:
        """Return the captured text, which depends on the bytes written and not on the sizes of the blocks read."""
        beyond = self._dropped + len(self._tail)
        if beyond <= 4 * TAIL_BYTES:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        middle = b"\n[... %d bytes ...]\n" % (beyond - TAIL_BYTES)
        return (bytes(self._head) + middle + bytes(self._tail[-TAIL_BYTES:])).decode("utf-8", "replace")

    def tail(self) -> str:
        """Return the last part of the captured text."""
        enough = len(self._tail) >= TAIL_BYTES
        last = bytes(self._tail) if enough else bytes(self._head + self._tail)
        return last[-TAIL_BYTES:].decode("utf-8", "replace")
