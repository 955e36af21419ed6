"""What a run works with: the Python, the channels, the journal, and a probe for each build."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from torchbisect.bisect.selection import find_build, parse_build
from torchbisect.cli.channels import Channels
from torchbisect.cli.display import Display
from torchbisect.cli.options import Options
from torchbisect.cli.workspace import Workspace
from torchbisect.containers.builds import Build, Channel
from torchbisect.containers.environments import Environment
from torchbisect.containers.errors import InputError, MachineError
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
        _refuse_what_is_missing(options)
        self.channels = Channels(options, display)
        self.interpreter = self.channels.interpreter
        self.limits = Limits() if options.timeout is None else Limits(eager=options.timeout)

    @functools.cached_property
    def workspace(self) -> Workspace:
        """The folder of the results.

        Raises:
            InputError, DiskFull: it can't be made or written to.
        """
        return Workspace(self.options.out)

    @functools.cached_property
    def journal(self) -> Journal:
        """What was answered before, in this run and earlier ones."""
        return Journal(self.workspace.journal)

    def failing_build(self) -> Build:
        """The build where the script fails: that of ``--torch``, else of ``--bad``, else the one installed.

        Raises:
            InputError: it isn't to be had.
        """
        wanted = self.options.torch or self.options.bad
        if wanted is not None and wanted != "installed":
            return self.build(wanted)
        installed = self.interpreter.installed_torch
        if installed is not None:
            return Build(installed, Channel.INSTALLED)
        builds = self.channels.releases.builds
        if wanted is not None:
            example = builds[-1] if builds else "2.8.0"
            raise InputError(
                f"--torch installed: {self.interpreter.path} has no torch; name a build, such as --torch {example}"
            )
        if not builds:
            raise MachineError(
                f"no torch for {self.interpreter.path} in {self.channels.indexes}: name another --python"
            )
        return builds[-1]

    def build(self, text: str) -> Build:
        """The build that a user's text names. Raises ``InputError`` if there is none."""
        selector = parse_build(text)
        if selector.channel is Channel.NIGHTLY:
            return self.channels.nightly(selector)
        if selector.installed:
            return self.failing_build()
        return find_build(self.channels.releases.builds, text)

    @contextmanager
    def probe(self, build: Build) -> Iterator[Probe]:
        """A probe in an environment with this build; ended and released at the end.

        Raises:
            InstallFailed: the build can't be had here.
        """
        maker = self.channels.maker(build)
        environment = maker.environment(build)
        try:
            with self.probe_in(environment) as probe:
                yield probe
        finally:
            maker.release(build)

    def probe_in(self, environment: Environment) -> Probe:
        """A probe in an environment that is there; the caller ends it."""
        options = self.options
        scope = " ".join((options.sandbox, options.image or "", *options.packages))
        return Probe(environment, self.journal, self.limits, repeat=self.options.repeat, scope=scope)

    def close(self) -> None:
        """Give everything back."""
        self.channels.close()


def _refuse_what_is_missing(options: Options) -> None:
    """One clear line for what can be typed and isn't served yet, before anything has been done."""
    if options.device == "cuda":
        raise InputError("--device cuda isn't served by this version: leave it out to run on the CPU")
