"""The tool's end of the stream to an agent. A line counts only if it has the digest that the agent alone can make.

``agent/message_stream.py`` is the other end and says what a digest is.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any

from torchbisect.containers.environment import Environment
from torchbisect.containers.process.processes import LineTooLong
from torchbisect.core.decode import DecodeError
from torchbisect.probe.agent_bundle import BOOT, KEY_BYTES, payload


class AgentStream:
    """A Python process that becomes an agent once it has been sent the modules."""

    def __init__(self, environment: Environment, variables: Mapping[str, str]) -> None:
        self._process = environment.start(["-c", BOOT], variables)
        self._key = secrets.token_bytes(KEY_BYTES)
        self._lines = 0

    def send_modules(self) -> None:
        """Send the key and the modules. Raise ``BrokenPipeError`` if the process has ended."""
        self._process.send(self._key + payload())

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a question. Raise ``BrokenPipeError`` if the process has ended."""
        self._process.send(json.dumps(message).encode("ascii") + b"\n")

    def read(self, timeout: float) -> bytes | None:
        """Return the next message, ``b""`` at the end, ``None`` after ``timeout`` seconds.

        Raise ``DecodeError`` for a line that is too long or without the right digest. A line that is torn by the end is
        left out.
        """
        try:
            line = self._process.read_line(timeout)
        except LineTooLong as error:
            raise DecodeError(str(error)) from None
        if line is None or not line.endswith(b"\n"):
            return None if line is None else b""
        digest, _, body = line.partition(b" ")
        right = hmac.new(self._key, b"%d " % self._lines + body, "sha256").hexdigest()
        if not hmac.compare_digest(digest, right.encode("ascii")):
            raise DecodeError("the line does not have the digest of the agent")
        self._lines += 1
        return body

    def errors(self) -> str:
        """Return the last part of the process's standard error."""
        return self._process.errors()

    def kill(self) -> None:
        """End the process and everything that it started."""
        self._process.kill()
