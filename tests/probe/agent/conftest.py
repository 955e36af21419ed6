"""One real agent on the installed torch, shared by the tests of this folder."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchbisect.containers.builds import Build, Channel
from torchbisect.containers.environments import Facts
from torchbisect.containers.venvs import Venv
from torchbisect.probe.client import Agent, Limits
from torchbisect.probe.observation import Observation
from torchbisect.probe.repro import Repro, Settings


@pytest.fixture(scope="session")
def installed() -> Venv:
    """The environment that the tests themselves run in."""
    facts = Facts(torch="", git_version=None, python="", platform="")
    return Venv(Build("0", Channel.INSTALLED), facts, Path(sys.executable), Path(tempfile.gettempdir()))


@pytest.fixture(scope="session")
def agent(installed: Venv) -> Iterator[Agent]:
    """An agent with limits small enough for scripts that never end."""
    with Agent(installed, Limits(eager=30.0, compiled_factor=2.0, compiled_floor=60.0)) as agent:
        yield agent


@pytest.fixture(scope="session")
def observe(agent: Agent) -> Callable[..., Observation]:
    """Asks the shared agent about a script; ``torch`` is imported for it."""

    def ask(source: str, **settings: object) -> Observation:
        return agent.observe(Repro("import torch\n" + source), Settings(**settings))  # type: ignore[arg-type]

    return ask
