"""One virtual environment on this machine, and how processes start in it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torchbisect.containers.environment import Completed, Facts
from torchbisect.containers.process.commands import clean_environment, run_command
from torchbisect.containers.process.processes import HostProcess
from torchbisect.containers.store.cache import remove_tree
from torchbisect.containers.store.disk import disk_errors
from torchbisect.core.build import Build


@dataclass(frozen=True)
class Venv:
    """A build in a virtual environment on this machine, or in the one that an interpreter had already.

    Attributes:
        python: the Python to start.
        homes: the folder that gets a home folder for each process.
        user_base: the user's own packages, for an interpreter that has its torch there.
    """

    build: Build
    facts: Facts
    python: Path
    homes: Path
    user_base: str = ""
    local: ClassVar[bool] = True

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> HostProcess:
        """Start this environment's Python in its own process group and clean variables; see ``Environment``."""
        home = self._home()
        return HostProcess(
            [str(self.python), *arguments],
            environment=self._variables(home, extra),
            directory=home,
            after=lambda: remove_tree(home),
        )

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        directory: str | None = None,
        extra: Mapping[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> Completed:
        """Run this environment's Python until it ends or ``timeout`` seconds pass; see ``Environment``."""
        home = self._home()
        try:
            return run_command(
                [str(self.python), *arguments],
                environment=self._variables(home, extra),
                directory=directory or home,
                timeout=timeout,
                cancel=cancel,
            )
        finally:
            remove_tree(home)

    def _home(self) -> Path:
        with disk_errors(self.homes):
            return Path(tempfile.mkdtemp(prefix="home-", dir=self.homes))

    def _variables(self, home: Path, extra: Mapping[str, str] | None) -> dict[str, str]:
        users = {"PYTHONUSERBASE": self.user_base} if self.user_base else {}
        return clean_environment(home, {**users, **(extra or {})})
