"""The provider of real runs: environments on this machine or in containers, and oracles that run scripts in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from torchbisect.containers.environment import Environment, check_gpu, check_import
from torchbisect.containers.python.variants import find_gpus
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError, InstallFailed, MachineError
from torchbisect.core.repro import Repro
from torchbisect.pipeline.build_sources import LocalBuildSources
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.provider import Notify
from torchbisect.pipeline.search_scope import reference_build
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.agent_client import Agent, AgentFailed
from torchbisect.probe.journal import Journal
from torchbisect.probe.measure.measured_runs import MeasuredRuns
from torchbisect.probe.measure.measuring_options import MeasuringOptions, measured_runs
from torchbisect.probe.measure.measuring_probe import MeasuringProbe
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.probe import Probe
from torchbisect.probe.probe_options import ProbeOptions
from torchbisect.probe.test_command import CommandProbe


class LocalProvider:
    """Installs builds and runs scripts in them. See ``provider.Provider``.

    Args:
        shared: the resources that consecutive runs share; their owner closes them.

    Raises ``InputError`` or ``MachineError`` if something that an option asks for is not there.
    """

    def __init__(self, options: Options, display: Display, shared: SharedResources | None = None) -> None:
        if options.device == "cuda" and options.sandbox == "venv" and not find_gpus():
            raise MachineError("--device cuda: nvidia-smi lists no GPU here; leave it out to run on the CPU")
        self._options = options
        self._shared = shared
        self.sources = shared.sources(options, display) if shared else LocalBuildSources(options, display)
        # A Python that can't be used is reported before anything is written.
        _ = self.sources.interpreter
        self._reference: MeasuredRuns | None = None
        self._leases = ExitStack()
        self._collected: dict[str, str | None] = shared.collected if shared else {}

    @property
    def journal(self) -> Journal | None:
        """The journal that consecutive runs share; ``None`` where each run has its own."""
        return self._shared.journal if self._shared else None

    @contextmanager
    def environment(self, build: Build) -> Iterator[Environment]:
        """Lease the environment of a build, installed if it is not there, with the GPU checked if one was asked for."""
        maker = self.sources.maker(build)
        environment = maker.environment(build)
        try:
            if build.channel is Channel.INSTALLED and not self._asks_an_agent:
                # It was found and not imported, and a test that fails for that would seem to show its mismatch.
                check_import(environment)
            if self._options.device == "cuda" and self._options.sandbox == "venv":
                check_gpu(environment)
            yield environment
        finally:
            maker.release(build)

    @property
    def _asks_an_agent(self) -> bool:
        """True if scripts are run by an agent, which can't start where torch can't be imported."""
        return self._options.test is None and self._options.measure is None

    @contextmanager
    def failing_oracle(self, build: Build, journal: Journal, notify: Notify) -> Iterator[Oracle]:
        """Return an oracle for the build where the script fails, with a warm process where runs share one."""
        if self._shared is None:
            with self.environment(build) as environment, self.oracle(environment, journal, notify) as oracle:
                yield oracle
        else:
            warm = self._shared.warm_environment(self.sources.maker(build), build)
            with self.oracle(warm.environment, journal, notify, warm.agent) as oracle:
                yield oracle

    def oracle(self, environment: Environment, journal: Journal, notify: Notify, agent: Agent | None = None) -> Oracle:
        """Return an oracle: the user's own test, else a probe, with ``agent`` as its warm process if there is one."""
        options = self._options
        measuring, scope = options.measuring, options.scope
        if measuring is not None:
            runs = self._reference_runs(measuring)
            return MeasuringProbe(environment, runs.environment, journal, measuring, reference_runs=runs)
        if options.test is not None:
            return CommandProbe(
                environment,
                journal,
                options.test,
                directory=str(Path.cwd()),
                timeout=options.timeout,
                repeat=options.repeat,
                scope=scope,
            )

        def notify_of_build(text: str) -> None:
            notify(f"torch {environment.build}: {text}")

        return Probe(
            environment,
            journal,
            ProbeOptions(options.limits, options.repeat, scope, options.bounds),
            notify=notify_of_build,
            agent=agent,
        )

    def _reference_runs(self, measuring: MeasuringOptions) -> MeasuredRuns:
        """Return the runs of the build that others are measured against, which is leased until the end of the run."""
        if self._reference is None:
            build = reference_build(self._options, self.sources)
            try:
                environment = self._leases.enter_context(self.environment(build))
            except InstallFailed as error:
                raise InputError(f"torch {build}, which the others are measured against: {error}") from error
            self._reference = measured_runs(environment, measuring)
            self._leases.callback(self._reference.close)
        return self._reference

    def collect_env(self, oracle: Oracle) -> str | None:
        """Return the output of ``python -m torch.utils.collect_env``, of the first call; see ``Provider``."""
        known = self._collected
        key = f"{self._options.packages} {oracle.environment.facts}"
        if key not in known:
            try:
                known[key] = oracle.run_tool("collect-env", Repro("")).text
            except AgentFailed:
                # A test of the user may be there for a torch that no agent can import.
                known[key] = None
        return known[key]

    def close(self) -> None:
        """Release everything that no other run shares."""
        self._leases.close()
        if self._shared is None:
            self.sources.close()
        else:
            self._shared.end_repro()
