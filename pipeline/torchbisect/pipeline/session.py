"""What a run works with: the Python, the channels, the journal, and a probe for each build."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from torchbisect.bisect.sources.selection import find_build, parse_build
from torchbisect.containers.environment import Environment
from torchbisect.containers.python.variants import check_gpu, find_gpus
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.repro import fingerprint
from torchbisect.pipeline.build_sources import Channels
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.shared_resources import Bench
from torchbisect.pipeline.workspace import Workspace
from torchbisect.probe.agent_client import Agent, Limits
from torchbisect.probe.journal import Journal
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.probe import Probe
from torchbisect.probe.test_command import CommandProbe

COLLECT_SECONDS = 120.0


class Tools:
    """Opens each thing when it is first needed, and closes all at the end.

    Args:
        options: what was typed.
        display: shows what goes on.
        notice: hears what a reader of the result should know.
        bench: what runs in a row share; it stays open.

    Raises:
        InputError: an option names something that isn't there.
        MachineError: this machine can't do its part.
    """

    def __init__(
        self, options: Options, display: Display, notice: Callable[[str], None], bench: Bench | None = None
    ) -> None:
        self.options = options
        self.display = display
        self._notice = notice
        self._bench = bench
        _refuse_what_is_missing(options)
        self.channels = bench.channels(options, display) if bench else Channels(options, display)
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
        return self._bench.journal if self._bench else Journal(self.workspace.journal)

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

    @property
    def question(self) -> str:
        """What was asked beside the script: the bounds and the test; a part of the keys of answers."""
        options = self.options
        return fingerprint(asdict(options.bounds), options.test, options.timeout, str(self._folder))

    @property
    def _folder(self) -> Path | None:
        """Where the user's own test is run."""
        return Path.cwd() if self.options.test is not None else None

    @contextmanager
    def probe(self, build: Build) -> Iterator[Oracle]:
        """A probe in an environment with this build; ended and released at the end.

        Raises:
            InstallFailed: the build can't be had here.
        """
        maker = self.channels.maker(build)
        environment = maker.environment(build)
        try:
            if self.options.device == "cuda" and self.options.sandbox == "venv":
                check_gpu(environment)
            with self.probe_in(environment) as probe:
                yield probe
        finally:
            maker.release(build)

    @contextmanager
    def first_probe(self, build: Build) -> Iterator[Oracle]:
        """The same for the build where the script fails; with a bench its agent is warm, and stays so for the next run.

        Raises:
            InstallFailed: the build can't be had here.
        """
        if self._bench is None:
            with self.probe(build) as probe:
                yield probe
        else:
            place = self._bench.place(self.channels.maker(build), build)
            with self.probe_in(place.environment, place.agent) as probe:
                yield probe

    def versions(self, environment: Environment) -> str | None:
        """What ``python -m torch.utils.collect_env`` says in an environment, if it can."""
        known = self._bench.versions if self._bench else {}
        key = f"{self.options.packages} {environment.facts}"
        if key not in known:
            done = environment.run(["-m", "torch.utils.collect_env"], timeout=COLLECT_SECONDS)
            known[key] = done.output if done.status == 0 else None
        return known[key]

    def probe_in(self, environment: Environment, agent: Agent | None = None) -> Oracle:
        """A probe in an environment that is there, with an agent that is; the caller ends it."""
        options = self.options
        scope = " ".join((options.sandbox, options.image or "", *options.packages))
        if options.test is not None:
            return CommandProbe(
                environment,
                self.journal,
                options.test,
                directory=str(self._folder),
                timeout=options.timeout,
                repeat=options.repeat,
                scope=scope,
            )

        def notify(text: str) -> None:
            self._notice(f"torch {environment.build}: {text}")

        return Probe(
            environment,
            self.journal,
            self.limits,
            repeat=options.repeat,
            scope=scope,
            bounds=options.bounds,
            notify=notify,
            agent=agent,
        )

    def close(self) -> None:
        """Give everything back that no other run shares."""
        if self._bench is None:
            self.channels.close()


def _refuse_what_is_missing(options: Options) -> None:
    """One clear line for what this machine lacks, before anything has been done."""
    if options.device == "cuda" and options.sandbox == "venv" and not find_gpus():
        raise MachineError("--device cuda: nvidia-smi lists no GPU here; leave it out to run on the CPU")
