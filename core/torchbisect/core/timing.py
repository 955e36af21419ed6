"""Measure the parts of a run: each becomes a debug record of the logger ``torchbisect.timing``, if anybody listens."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOGGER = logging.getLogger("torchbisect.timing")


@dataclass(frozen=True)
class Span:
    """One part of a run.

    Attributes:
        kind: ``stage``, ``start`` (of an agent, to its first message), ``question`` (to an agent), ``process`` (one
            that runs to its end) or ``install``.
        name: the stage, the question's role, or what was started.
        began: seconds on the monotonic clock.
        seconds: its length in wall time.
        thread: the name of the thread.
    """

    kind: str
    name: str
    began: float
    seconds: float
    thread: str


@contextmanager
def timed(kind: str, name: str) -> Iterator[None]:
    """Measure what is done in the context, also where it fails."""
    if not LOGGER.isEnabledFor(logging.DEBUG):
        yield
        return
    began = time.monotonic()
    try:
        yield
    finally:
        span = Span(kind, name, began, time.monotonic() - began, threading.current_thread().name)
        LOGGER.debug("%s %s: %.2f s", kind, name, span.seconds, extra={"span": span})


@contextmanager
def collected() -> Iterator[list[Span]]:
    """Collect every part that is measured in the context, in the order in which they end."""
    spans: list[Span] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            spans.append(record.__dict__["span"])

    handler, level, propagate = Collector(), LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.propagate = False
    try:
        yield spans
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate
