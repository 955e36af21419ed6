"""Retry of requests that failed for a moment.

A request that still fails when the retries end is a fault of the machine. It must never look like a missing build,
or a bisection would skip half the releases because a router was restarted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from torchbisect.core.errors import IndexUnreachable

Result = TypeVar("Result")
Notify = Callable[[str], None]

#: Client errors that say "try again": Request Timeout (RFC 9110), Too Early (RFC 8470), Too Many Requests (RFC 6585).
_RETRIED = frozenset({408, 425, 429})


class Transient(Exception):
    """A failure that another try may not meet; its text is one line."""


def is_transient_status(status: int) -> bool:
    """Return true for an HTTP status that another try may change: a server error, or one of ``_RETRIED``."""
    return status >= 500 or status in _RETRIED


def raise_for_transient_status(status: int) -> None:
    """Raise ``Transient`` for an HTTP status that another try may change."""
    if is_transient_status(status):
        raise Transient(f"HTTP status {status}")


@dataclass(frozen=True)
class RetryPolicy:
    """Waits between tries, in seconds.

    Attributes:
        first_wait: the wait before the second try; each later wait is twice as long as the one before.
        longest_wait: upper limit of a single wait.
        total: the time after which there is no further try.
    """

    first_wait: float = 1.0
    longest_wait: float = 20.0
    total: float = 60.0


DEFAULT_RETRY = RetryPolicy()


def silent(text: str) -> None:
    """Ignore a message, for callers that have nobody to tell."""


def retry_transient(
    ask: Callable[[], Result],
    what: str,
    *,
    notify: Notify = silent,
    retry: RetryPolicy = DEFAULT_RETRY,
    wait: Callable[[float], None] | None = None,
) -> Result:
    """Call ``ask`` until it does not raise ``Transient``, with growing waits.

    Args:
        ask: the request.
        what: the thing asked for, as messages name it: ``the index https://...``.
        notify: told before each wait what went wrong and how long the wait is.
        retry: the waits, and when to stop.
        wait: sleeps for that many seconds; by default ``time.sleep``. It may raise to end the wait early.

    Raise ``IndexUnreachable`` if the last try fails.
    """

    def tell(state: tenacity.RetryCallState) -> None:
        failure = state.outcome.exception() if state.outcome else None
        seconds = state.next_action.sleep if state.next_action else 0.0
        notify(f"{what} did not answer ({failure}): next try in {seconds:.0f} s")

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Transient),
        wait=tenacity.wait_exponential(multiplier=retry.first_wait, max=retry.longest_wait),
        stop=tenacity.stop_after_delay(retry.total),
        before_sleep=tell,
        sleep=wait or tenacity.nap.sleep,
        reraise=True,
    )
    try:
        return retrying(ask)
    except Transient as failure:
        raise IndexUnreachable(
            f"{what} did not answer ({failure}): check the network and the proxy, or name another index with "
            "--index-url; the same command goes on from here"
        ) from failure
