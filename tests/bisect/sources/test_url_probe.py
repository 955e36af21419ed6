"""Checks for files on a web server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchbisect.bisect.sources.url_probe import UrlProbe
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import RetryPolicy


def test_a_host_that_is_down_is_no_missing_file(
    serve: Callable[[dict[str, str | int]], tuple[str, list[str]]],
) -> None:
    address, _ = serve({"/busy": 503})
    with UrlProbe(retry=RetryPolicy(0.01, 0.01, 0.03)) as probe, pytest.raises(IndexUnreachable):
        probe.exists(f"{address}/busy")
