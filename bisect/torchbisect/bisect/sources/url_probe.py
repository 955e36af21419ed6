"""Check for files on a web server by ``HEAD`` requests."""

from __future__ import annotations

from types import TracebackType

import httpx

from torchbisect.containers.index.pages import new_client
from torchbisect.core.retry import (
    DEFAULT_RETRY,
    Notify,
    RetryPolicy,
    Transient,
    raise_for_transient_status,
    retry_transient,
    silent,
)


class UrlProbe:
    """Checks for files over one connection, and never asks again for a file that is missing.

    Args:
        notify: called before each wait for a host that does not answer.
        retry: the time to go on asking a host.
    """

    def __init__(
        self,
        *,
        notify: Notify = silent,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> None:
        self._missing: set[str] = set()
        self._notify = notify
        self._retry = retry
        self._client = new_client()

    def __enter__(self) -> UrlProbe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def exists(self, url: str) -> bool:
        """Return true if there is a file at an address.

        Raises:
            IndexUnreachable: if its host does not answer, also after the retries. That does not mean "no".
        """
        if url in self._missing:
            return False

        def ask() -> int:
            try:
                status = self._client.head(url).status_code
            except httpx.HTTPError as error:
                raise Transient(str(error) or type(error).__name__) from error
            raise_for_transient_status(status)
            return status

        host = httpx.URL(url).host
        status = retry_transient(ask, f"the host {host}", notify=self._notify, retry=self._retry)
        there = status == 200
        if not there:
            self._missing.add(url)
        return there
