"""The torch that is installed beside torchbisect, for reductions of its real bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.probe.journal import Journal
from torchbisect.probe.probe import Probe


@pytest.fixture(scope="module")
def probe(torch_of: Callable[[str], Environment]) -> Iterator[Probe]:
    """Questions to the torch beside this Python."""
    with Probe(torch_of("installed"), Journal()) as probe:
        yield probe
