"""A local server that stores issues and comments like GitHub, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from comment_hub import Handler, Hub, Waits
from loopback import listening

from torchbisect.triage.github import GitHub


@pytest.fixture
def hub() -> Iterator[Hub]:
    kept = Hub()
    with listening(type("Bound", (Handler,), {"hub": kept})) as kept.base:
        yield kept


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def github(hub: Hub, waits: Waits) -> Iterator[GitHub]:
    with GitHub("secret", base=hub.base, sleep=waits.append) as client:
        yield client
