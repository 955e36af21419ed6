"""The question of a measured search, and where the journal keeps its answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torchbisect.containers.environment import Environment
from torchbisect.core.decode import decode
from torchbisect.core.repro import Repro, fingerprint
from torchbisect.core.version import __version__
from torchbisect.probe.journal import Journal
from torchbisect.probe.localize.compiler_flags import Flag
from torchbisect.probe.measure.comparison import BuildMeasurement
from torchbisect.probe.measure.measure import Measure
from torchbisect.probe.measure.measured_runs import MeasuredRuns
from torchbisect.probe.module_sources import repro_identity
from torchbisect.probe.separate_runs import DEFAULT_TIMEOUT
from torchbisect.probe.test_command import named_files


@dataclass(frozen=True)
class MeasuringOptions:
    """The question of a measured search.

    Attributes:
        measure: the number that decides.
        worse_by: the ratio from which on a build is worse; below 1 for a number that should be high.
        command: the user's own test, which is run instead of the script.
        directory: the working directory of that test.
        timeout: seconds that a run may take; half an hour if left out.
        scope: whatever else decides how a script runs here, as in ``Probe``.
        flags: compiler flags that are set on the asked build, and not on the reference build.
    """

    measure: Measure
    worse_by: float
    command: str | None = None
    directory: str | None = None
    timeout: float | None = None
    scope: str = ""
    flags: tuple[Flag, ...] = ()

    def key(self, repro: Repro) -> str:
        """Return the part of the journal's keys that all builds share."""
        files = named_files(self.command, self.directory) if self.command is not None else []
        how = (self.measure.text, self.command, self.directory, files, self.timeout, self.scope)
        return fingerprint(__version__, "measured", how, repro_identity(repro), *self.flags)


def measured_runs(environment: Environment, options: MeasuringOptions) -> MeasuredRuns:
    """Return the runs of an environment."""
    return MeasuredRuns(
        environment,
        options.measure,
        timeout=options.timeout or DEFAULT_TIMEOUT,
        command=options.command,
        directory=options.directory,
    )


def kept_measurement(
    journal: Journal, options: MeasuringOptions, repro: Repro, against: str, build: str
) -> BuildMeasurement | None:
    """Return the finished measurement of a build by the names of both builds, or ``None`` if there is none."""
    return journal.get(result_key(options, repro, against, build), partial(decode, BuildMeasurement))


def result_key(options: MeasuringOptions, repro: Repro, against: str, build: str, *tags: str) -> str:
    """Return the journal's key of a comparison by the names of both builds."""
    return fingerprint(options.key(repro), options.worse_by, against, build, *tags)
