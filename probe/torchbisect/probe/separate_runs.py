"""The part that oracles share whose every run is a process of its own: nothing is warm, so nothing is checked."""

from __future__ import annotations

from types import TracebackType

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro
from torchbisect.core.trace import Trace
from torchbisect.probe.agent_client import Agent, AgentFailed, ToolAnswer
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.limits import Limits
from torchbisect.probe.oracle import Oracle, Question

DEFAULT_TIMEOUT = 1800.0
"""Seconds that a run of the user's own may take."""
NOTHING_TRACED = Trace((), ())


class SeparateRuns:
    """Base of such an oracle. An agent is started only for traces and for torch's own tools."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.limits = Limits()
        self._agent: Agent | None = None
        self._untraceable = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self.close()

    def start(self, expected: Question | None = None) -> None:
        """Do nothing: each run is a process of its own."""

    def take_over(self, clone: Oracle) -> None:
        """Do nothing: no process outlives its run."""

    def prepare_fresh_process(self, repro: Repro) -> None:
        """Do nothing: each run is a process of its own."""

    def use_prepared_process(self) -> None:
        """Do nothing: each run is a process of its own."""

    def fresh_process_agrees(self, question: Question) -> bool:
        """Return True: each run is a process of its own."""
        return True

    def mismatch_in_plain_process(self, repro: Repro) -> Mismatch | None:
        """Return ``None``: every run is a plain process."""
        return None

    def trace(self, repro: Repro) -> Trace:
        """Return what an eager run of a script did; empty for one that only a test can run, or where none can be."""
        if self._untraceable:
            return NOTHING_TRACED
        try:
            return self._started_agent().trace(repro)
        except AgentFailed:  # it needs torch 2.0, and a test or a script that is measured does not
            self._untraceable = True
            return NOTHING_TRACED

    def run_tool(self, name: str, repro: Repro) -> ToolAnswer:
        """Return the answer of one of torch's own tools; see ``Oracle``."""
        return self._started_agent().run_tool(name, repro)

    def _started_agent(self) -> Agent:
        self._agent = self._agent or Agent(self.environment, self.limits)
        return self._agent

    def close(self) -> None:
        """End the agent; the runs have ended by themselves."""
        agent, self._agent = self._agent, None
        if agent is not None:
            agent.close()
