"""The interface through which a run gets builds, their environments and their oracles."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.selection import BuildSelector
from torchbisect.containers.environment import Environment, Environments
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.core.build import Build
from torchbisect.probe.journal import Journal
from torchbisect.probe.oracle import Oracle

Notify = Callable[[str], None]


class BuildSources(Protocol):
    """The builds that each channel offers, and what makes environments of them."""

    @property
    def interpreter(self) -> Interpreter:
        """The Python that environments are made with."""

    @property
    def cache(self) -> Cache:
        """The folder in which environments are kept."""

    @property
    def indexes(self) -> Indexes:
        """The indexes of the releases."""

    @property
    def variant(self) -> str:
        """The variant of the nightlies."""

    @property
    def releases(self) -> Listing:
        """The releases, oldest first. Raises ``IndexUnreachable``."""

    @property
    def listed_nightlies(self) -> Listing:
        """The nightlies on the index's page, oldest first. Raises ``IndexUnreachable``."""

    def nightlies_between(self, first: datetime.date, last: datetime.date) -> Listing:
        """The nightlies of these days, both included. Raises ``IndexUnreachable``."""

    def nightly(self, selector: BuildSelector) -> Build:
        """The nightly that a user named. Raises ``InputError`` if there is none."""

    def maker(self, build: Build) -> Environments:
        """The maker of environments of builds like this one."""


class Provider(Protocol):
    """Gives a run its builds and answers its questions about them."""

    @property
    def sources(self) -> BuildSources:
        """The lists of builds, and the makers of environments."""

    @property
    def journal(self) -> Journal | None:
        """The journal that consecutive runs share; ``None`` where each run has its own."""

    def environment(self, build: Build) -> AbstractContextManager[Environment]:
        """Lease the environment of a build. Raises ``InstallFailed`` if it lacks what was asked for."""

    def oracle(self, environment: Environment, journal: Journal, notify: Notify) -> Oracle:
        """Return an oracle for an environment; the caller closes it.

        Args:
            environment: the environment; it stays the caller's.
            journal: keeps the oracle's answers.
            notify: receives a line for the reader of the report.
        """

    def failing_oracle(self, build: Build, journal: Journal, notify: Notify) -> AbstractContextManager[Oracle]:
        """Return an oracle for the build where the script fails, with a warm process where runs share one.

        Raises ``InstallFailed`` if the build can't be installed here.
        """

    def collect_env(self, oracle: Oracle) -> str | None:
        """Return the output of ``python -m torch.utils.collect_env`` in an environment, or ``None`` if it failed.

        It is run once in an environment.
        """

    def close(self) -> None:
        """Release everything that no other run shares."""
