"""What runs in a row share: the channels with their environments, a journal, and an agent that is warm in each.

A triage's worker runs many scripts on one bench: importing torch and its compiler costs seconds, a question to an agent
that has done so costs a fraction of one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from torchbisect.containers.environment import Environment, Environments
from torchbisect.core.build import Build
from torchbisect.pipeline.build_sources import Channels
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.journal import Journal

#: So many environments are kept leased with their agents, each of which holds a few hundred megabytes.
PLACES = 2

# What decides which environments there are, and what is asked of indexes.
_DECIDING = (
    "python",
    "channels",
    "index_url",
    "extra_index_urls",
    "sandbox",
    "image",
    "variant",
    "device",
    "packages",
    "cache_dir",
)


@dataclass(frozen=True)
class Place:
    """A leased environment and its agent, which is started by its first question."""

    environment: Environment
    agent: Agent


class Bench:
    """Keeps what runs in a row share; for one thread.

    Attributes:
        journal: for all runs.
        versions: what was read once of an environment, by its facts and the packages in it.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.versions: dict[str, str | None] = {}
        self._channels: dict[tuple[object, ...], Channels] = {}
        self._places: OrderedDict[tuple[int, Build], tuple[Place, Environments]] = OrderedDict()

    def channels(self, options: Options, display: Display) -> Channels:
        """The channels for these options."""
        key = tuple(getattr(options, name) for name in _DECIDING)
        if key not in self._channels:
            self._channels[key] = Channels(options, display)
        return self._channels[key]

    def place(self, maker: Environments, build: Build) -> Place:
        """The environment of a build, leased until others were asked for since.

        Raises:
            InstallFailed: the build can't be had here.
        """
        key = (id(maker), build)
        if key not in self._places:
            while len(self._places) >= PLACES:
                self._give_back(next(iter(self._places)))
            environment = maker.environment(build)
            self._places[key] = Place(environment, Agent(environment)), maker
        self._places.move_to_end(key)
        return self._places[key][0]

    def _give_back(self, key: tuple[int, Build]) -> None:
        place, maker = self._places.pop(key)
        place.agent.close()
        maker.release(key[1])

    def close(self) -> None:
        """End every agent and give every environment back."""
        for key in list(self._places):
            self._give_back(key)
        for channels in self._channels.values():
            channels.close()
        self._channels.clear()
