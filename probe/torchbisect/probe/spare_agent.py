"""Start an agent in the background, so that a question that needs a fresh process does not wait for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from torchbisect.containers.environment import Environment
from torchbisect.core.errors import TorchbisectError
from torchbisect.probe.agent.run.compiler_cache import is_known
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.limits import Limits


class SpareAgent:
    """At most one agent that is prepared, and at most one that was lent. Used from one thread."""

    def __init__(self, environment: Environment, limits: Limits) -> None:
        self._environment = environment
        self._limits = limits
        self._ready: tuple[Agent, threading.Thread] | None = None
        self._used: Agent | None = None
        self._backend = ""

    def prepare(self, backend: str) -> None:
        """Start it, unless there is one, and let it compile a small function with a backend and those before it.

        A failure to start is met by the question that needs it.
        """
        kept = self._environment.compiler_cache
        # Beside another process that finds out what is not known of the compiler, it would only find out the same.
        self._backend = backend if kept is not None and is_known(kept) else "aot_eager"
        if self._ready is None:
            self._prepare(Agent(self._environment, self._limits))

    def exchange(self, agent: Agent) -> Agent:
        """Return the prepared agent, if there is one, and prepare the given one in its place."""
        if self._ready is None:
            return agent
        prepared, starting = self._ready
        self._prepare(agent)
        starting.join()
        return prepared

    def _prepare(self, agent: Agent) -> None:
        thread = threading.Thread(
            target=_start, args=(agent, self._backend), daemon=True, name="torchbisect-spare-agent"
        )
        thread.start()
        self._ready = agent, thread

    @contextmanager
    def take(self) -> Iterator[Agent]:
        """Lend the prepared agent, or a new one. Afterwards a new one is ended, and a prepared one is kept as used."""
        ready, self._ready = self._ready, None
        if ready is None:
            with Agent(self._environment, self._limits) as agent:
                yield agent
            return
        agent, starting = ready
        starting.join()
        try:
            yield agent
        except BaseException:
            agent.close()
            raise
        self.keep(agent)

    def keep(self, agent: Agent) -> None:
        """Keep an agent that is not fresh, in the place of the one before it."""
        self._end_used()
        self._used = agent

    def take_used(self) -> Agent | None:
        """Return an agent that was lent, if one is kept; the caller closes it."""
        used, self._used = self._used, None
        return used

    def close(self) -> None:
        """End an agent that nobody took, and one that was lent."""
        self._end_used()
        ready, self._ready = self._ready, None
        if ready is not None:
            ready[0].close()

    def _end_used(self) -> None:
        used = self.take_used()
        if used is not None:
            used.close()


def _start(agent: Agent, backend: str) -> None:
    with suppress(TorchbisectError):
        agent.prewarm((backend,))
