"""Agents that the tests of this folder attack."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from attacked_agent import LIMITS, AsNobody

from torchbisect.containers.environment import Venv
from torchbisect.probe.agent_client import Agent


@pytest.fixture(scope="module", params=["this user", pytest.param("nobody", marks=pytest.mark.long)])
def attacked(request: pytest.FixtureRequest, installed: Venv) -> Iterator[Agent]:
    """An agent of the user who runs the tests, and one of a user without rights."""
    environment: object = installed
    with contextlib.ExitStack() as stack:
        if request.param == "nobody":
            if os.getuid() != 0 or not shutil.which("setpriv"):
                pytest.skip("only root can become another user")
            outside = stack.enter_context(tempfile.TemporaryDirectory())
            os.chmod(outside, 0o755)
            home = os.path.join(outside, "torchbisect-run-x", "h-x", "h-y")
            os.makedirs(home)
            for place in (home, os.path.dirname(home), os.path.dirname(os.path.dirname(home))):
                os.chown(place, 65534, 65534)
            environment = AsNobody(installed, home)
        yield stack.enter_context(Agent(environment, LIMITS))  # type: ignore[arg-type]
