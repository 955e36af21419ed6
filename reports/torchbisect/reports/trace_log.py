"""Scrub a structured trace of torch (``TORCH_TRACE``), so that it can be given away and still be read by tlparse."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from torchbisect.core.scrub import scrub
from torchbisect.reports.sanitize import without_machine_paths

TRACE = "trace.log"
_PAYLOAD = re.compile(r'("has_payload": ")\w*(")')


def scrubbed_trace(text: str) -> str:
    """Return a trace without secrets and paths of this machine.

    An event is a line with a JSON object. Its payload follows on lines that begin with a tab, and the object has the
    payload's digest, which is made anew.
    """
    return "\n".join(line for event in _events(text) for line in _scrubbed_event(event)) + "\n"


def names_machine(text: str) -> bool:
    """Return True if a scrubbed trace still has a secret, or a path of this machine."""
    return any(scrub(without_machine_paths(line)) != line for line in text.splitlines())


def _events(text: str) -> Iterator[list[str]]:
    event: list[str] = []
    for line in text.splitlines():
        if event and not line.startswith("\t"):
            yield event
            event = []
        event.append(line)
    if event:
        yield event


def _scrubbed_event(event: list[str]) -> Iterator[str]:
    head, *payload = (scrub(without_machine_paths(line)) for line in event)
    digest = hashlib.md5("\n".join(line[1:] for line in payload).encode(), usedforsecurity=False).hexdigest()
    yield _PAYLOAD.sub(rf"\g<1>{digest}\2", head)
    yield from payload
