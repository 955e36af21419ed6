"""What a run works with: the Python, the indexes, the cache of environments, the journal, the list of builds."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from torchbisect.bisect.channels import release
from torchbisect.bisect.channels.listing import Listing
from torchbisect.bisect.selection import find_build
from torchbisect.cli.display import Display
from torchbisect.cli.options import Options
from torchbisect.cli.workspace import Workspace
from torchbisect.containers.builds import Build, Channel
from torchbisect.containers.cache import Cache
from torchbisect.containers.errors import InputError, MachineError
from torchbisect.containers.indexes import Indexes
from torchbisect.containers.interpreters import Interpreter
from torchbisect.containers.pages import packages
from torchbisect.containers.venvs import Venvs
from torchbisect.probe.client import Limits
from torchbisect.probe.journal import Journal
from torchbisect.probe.probe import Probe


class Tools:
    """Opens each thing when it is first needed, and closes all at the end.

    Raises:
        InputError: an option names something that isn't there.
        MachineError: this machine can't do its part.
    """

    def __init__(self, options: Options, display: Display) -> None:
        self.options = options
        self.display = display
        refuse_what_is_missing(options)
        self.workspace = Workspace(options.out)
        self.interpreter = Interpreter.of(options.python)
        self.limits = Limits() if options.timeout is None else Limits(eager=options.timeout)
        self.journal = Journal(self.workspace.journal)

    @functools.cached_property
    def indexes(self) -> Indexes:
        """Where wheels are looked for."""
        return Indexes.gather(self.options.index_url, self.options.extra_index_urls, python=str(self.interpreter.path))

    @functools.cached_property
    def venvs(self) -> Venvs:
        """The environments."""
        return Venvs(
            Cache(self.options.cache_dir),
            self.interpreter,
            self.indexes,
            packages=self.options.packages,
            notify=self.display.status,
        )

    @functools.cached_property
    def releases(self) -> Listing:
        """The releases that the index offers to this Python, oldest first."""
        return list_releases(self.indexes, self.interpreter, self.display)

    def failing_build(self) -> Build:
        """The build where the script fails: that of ``--torch``, else of ``--bad``, else the one installed.

        Raises:
            InputError: it isn't to be had.
        """
        wanted = self.options.torch or self.options.bad
        installed = self.interpreter.installed_torch
        if wanted is None and installed is None:
            if not self.releases.builds:
                raise MachineError(f"no torch for {self.interpreter.path} in {self.indexes}: name another --python")
            return self.releases.builds[-1]
        if wanted is None or wanted == "installed":
            if installed is None:
                raise InputError(
                    f"--torch installed: {self.interpreter.path} has no torch; name a build, such as --torch "
                    f"{self.releases.builds[-1] if self.releases.builds else '2.8.0'}"
                )
            return Build(installed, Channel.INSTALLED)
        return self.release(wanted)

    def release(self, wanted: str) -> Build:
        """The build that a user's text names. Raises ``InputError`` if there is none."""
        return find_build(self.releases.builds, wanted)

    @contextmanager
    def probe(self, build: Build) -> Iterator[Probe]:
        """A probe in an environment with this build; ended and released at the end.

        Raises:
            InstallFailed: the build can't be had here.
        """
        environment = self.venvs.environment(build)
        try:
            probe = Probe(
                environment,
                self.journal,
                self.limits,
                repeat=self.options.repeat,
                scope=" ".join(self.options.packages),
            )
            try:
                yield probe
            finally:
                probe.close()
        finally:
            self.venvs.release(build)

    def close(self) -> None:
        """Give everything back."""
        if "venvs" in self.__dict__:
            self.venvs.close()


def list_releases(indexes: Indexes, interpreter: Interpreter, display: Display) -> Listing:
    """Read the index's page of torch.

    Raises:
        IndexUnreachable: it did not answer.
    """
    return release.releases(packages(indexes, "torch", notify=display.warn), interpreter)


def refuse_what_is_missing(options: Options) -> None:
    """One clear line for what can be typed and isn't served yet, before anything has been done."""
    if options.sandbox == "docker":
        raise InputError("--sandbox docker isn't served by this version: leave it out to run in a venv")
    unserved = [channel for channel in options.channels if channel != "release"]
    if unserved:
        raise InputError(f"--channel {unserved[0]} isn't served by this version: leave it out to look among releases")
    for name in ("variant", "device"):
        value = getattr(options, name)
        if value not in (None, "cpu"):
            raise InputError(f"--{name} {value} isn't served by this version: leave it out")
