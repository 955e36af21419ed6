"""Real agents for the tests of this folder, on the installed torch or on an older one that a parameter names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from torchbisect.containers.environment import Environment, Venv
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.limits import Limits


@pytest.fixture(scope="session")
def installed(torch_of: Callable[[str], Environment]) -> Venv:
    """The environment that runs the tests."""
    return cast(Venv, torch_of("installed"))


@pytest.fixture(scope="session")
def agents(torch_of: Callable[[str], Environment]) -> Iterator[Callable[[str], Agent]]:
    """Return the agent for a version of torch. Its limits are small, because some scripts never end."""
    started: dict[str, Agent] = {}
    with ExitStack() as stack:

        def agent(version: str) -> Agent:
            if version not in started:
                limits = Limits(eager=30.0, compiled_factor=2.0, compiled_floor=60.0)
                started[version] = stack.enter_context(Agent(torch_of(version), limits))
            return started[version]

        yield agent


@pytest.fixture
def agent(request: pytest.FixtureRequest, agents: Callable[[str], Agent]) -> Agent:
    """The agent on the installed torch, or on the version that an indirect parameter names."""
    return agents(getattr(request, "param", "installed"))


@pytest.fixture
def observe(agent: Agent) -> Callable[..., Observation]:
    """Return a function that observes a script; ``import torch`` is added to the script."""

    def ask(source: str, **settings: Any) -> Observation:
        return agent.observe(Repro("import torch\n" + source), Settings(**settings))

    return ask
