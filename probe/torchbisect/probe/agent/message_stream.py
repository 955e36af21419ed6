"""The agent's end of the stream to the tool: one line of JSON for a message, each with a keyed digest.

Scripts run under the agent's user, so one may find a way to write into this stream. The tool accepts a line only if its
digest (HMAC-SHA256, RFC 2104) was made with a key that the tool sends before anything else. Every child of the agent
overwrites the key in the fork itself, before it runs a line of a script. The digest covers the number of the line too,
so that no line counts twice.

While a question is open, the agent sends a sign of life every few seconds, by a timer. So the tool notices soon that a
script has stopped the agent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
from typing import Any, Dict, Iterator

BEAT_SECONDS = 2.0
_BLOCK = 64  # bytes of a block of SHA-256


class MessageStream:
    """Questions from one file descriptor, messages to another one.

    Args:
        key: it is overwritten here. What is kept of it are two buffers that never move, so that a child can overwrite
            them too, and no copy stays in freed memory.
    """

    def __init__(self, reader: int, writer: int, key: bytearray) -> None:
        self._reader = os.fdopen(reader, "rb")
        self._writer = os.fdopen(writer, "wb", buffering=0)
        self._inner, self._outer = _padded(key, 0x36), _padded(key, 0x5C)
        _overwrite(key)
        os.register_at_fork(after_in_child=self._forget)
        self._lines = 0
        self._is_writing = False
        self._question: Any = None
        self._last_beat = 0.0
        signal.signal(signal.SIGALRM, self._beat)
        signal.siginterrupt(signal.SIGALRM, False)

    def questions(self) -> Iterator[Dict[str, Any]]:
        """Yield the questions until the other side closes the stream."""
        for line in self._reader:
            yield json.loads(line.decode("utf-8"))

    def send(self, message: Dict[str, Any]) -> None:
        """Write a message as one line: its digest, a space, and the message."""
        self._is_writing = True
        try:
            body = (json.dumps(message) + "\n").encode("ascii")
            data = self._digest(body) + b" " + body
            self._lines += 1
            while data:
                data = data[os.write(self._writer.fileno(), data) :]
        finally:
            self._is_writing = False

    @contextlib.contextmanager
    def beating(self, question: Any) -> Iterator[None]:
        """Send signs of life while a question is open."""
        self._question = question
        signal.setitimer(signal.ITIMER_REAL, BEAT_SECONDS, BEAT_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _beat(self, *_: Any) -> None:
        now = time.monotonic()
        # A script may send the signal as well, so the rate is limited here.
        if not self._is_writing and now - self._last_beat > BEAT_SECONDS / 2:
            self._last_beat = now
            self.send({"id": self._question, "alive": True})

    def _digest(self, body: bytes) -> bytes:
        inner, outer = hashlib.sha256(self._inner), hashlib.sha256(self._outer)
        inner.update(b"%d " % self._lines)
        inner.update(body)
        outer.update(inner.digest())
        return outer.hexdigest().encode("ascii")

    def _forget(self) -> None:
        _overwrite(self._inner)
        _overwrite(self._outer)


def _padded(key: bytearray, pad: int) -> bytearray:
    block = bytearray([pad]) * _BLOCK
    for at, byte in enumerate(key):
        block[at] = byte ^ pad
    return block


def _overwrite(secret: bytearray) -> None:
    for at in range(len(secret)):
        secret[at] = 0
