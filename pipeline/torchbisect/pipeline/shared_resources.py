"""Resources that consecutive runs share: build lists, environments, a journal, and a warm process in each environment.

A triage worker runs many scripts one after the other. Importing torch and its compiler takes seconds; a question to a
process that has done so takes a fraction of one. In containers no process is shared: each repro gets its own.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from torchbisect.containers.environment import Environment, Environments
from torchbisect.core.build import Build
from torchbisect.pipeline.build_sources import LocalBuildSources
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.journal import Journal

#: Environments that stay leased with their agents, each of which takes a few hundred megabytes of memory.
MOST_WARM = 2

# The options that decide which environments there are, and which indexes are read.
_ENVIRONMENT_OPTIONS = (
    "python",
    "channels",
    "index_url",
    "extra_index_urls",
    "sandbox",
    "image",
    "runtime",
    "variant",
    "device",
    "packages",
    "allow_sdists",
    "cache_dir",
)


@dataclass(frozen=True)
class WarmEnvironment:
    """A leased environment and its agent, which the first question starts."""

    environment: Environment
    agent: Agent


class SharedResources:
    """Keeps what consecutive runs share; for one thread.

    Attributes:
        journal: the journal of all runs.
        collected: the output of ``collect_env`` by the environment's facts and packages.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.collected: dict[str, str | None] = {}
        self._sources: dict[tuple[object, ...], LocalBuildSources] = {}
        self._warm: OrderedDict[tuple[int, Build], tuple[WarmEnvironment, Environments]] = OrderedDict()

    def sources(self, options: Options, display: Display) -> LocalBuildSources:
        """Return the build sources for these options."""
        key = tuple(getattr(options, name) for name in _ENVIRONMENT_OPTIONS)
        if key not in self._sources:
            self._sources[key] = LocalBuildSources(options, display)
        return self._sources[key]

    def warm_environment(self, maker: Environments, build: Build) -> WarmEnvironment:
        """Return the environment of a build; it stays leased until enough others were asked for.

        Raises ``InstallFailed`` if the build can't be installed here.
        """
        key = (id(maker), build)
        if key not in self._warm:
            while len(self._warm) >= MOST_WARM:
                self._release(next(iter(self._warm)))
            environment = maker.environment(build)
            self._warm[key] = WarmEnvironment(environment, Agent(environment)), maker
        self._warm.move_to_end(key)
        return self._warm[key][0]

    def end_repro(self) -> None:
        """End the agents in containers, so that the next repro gets a container in which no other has run."""
        for warm, _ in self._warm.values():
            if not warm.environment.local:
                warm.agent.close()

    def _release(self, key: tuple[int, Build]) -> None:
        warm, maker = self._warm.pop(key)
        warm.agent.close()
        maker.release(key[1])

    def close(self) -> None:
        """Stop every agent and release every environment."""
        for key in list(self._warm):
            self._release(key)
        for sources in self._sources.values():
            sources.close()
        self._sources.clear()
