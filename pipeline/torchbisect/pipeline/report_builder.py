"""The report builder: collects the results of the stages, and makes a report of them at any moment."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.containers.environment import Facts
from torchbisect.core.build import Build
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.version import __version__
from torchbisect.minimizer.explain.conditions import MeasuredCondition
from torchbisect.pipeline.measurement_part import MeasuredSearch
from torchbisect.pipeline.options import Options, is_test, measuring_command, repeat_command
from torchbisect.pipeline.script_size import repro_size, script_size
from torchbisect.pipeline.search_parts import bisect_part, commit_fields
from torchbisect.pipeline.stages.bisect import Level
from torchbisect.pipeline.stages.minimize import ShrunkScript
from torchbisect.pipeline.stages.observe import Observed
from torchbisect.pipeline.stages.refine import Refinement
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.localize.backends import Localization
from torchbisect.probe.localize.compiler_bisector import PassFound
from torchbisect.probe.standalone_run import PlainRun
from torchbisect.reports import files
from torchbisect.reports.model import report as shapes
from torchbisect.reports.model.measurement import FlagEffect, GeneratedKernels, MeasurementReport
from torchbisect.reports.model.search_results import BisectReport, BuildFacts, BuildVerdict, builds_in_order
from torchbisect.reports.sanitize import without_machine_paths


class ReportBuilder:
    """Collects results; runs nothing.

    Attributes:
        part: the part of the run that is at work, for the list of unfinished parts.
        interrupted: the user has ended the run.
    """

    def __init__(self, options: Options, repro: Repro, variables: Mapping[str, str] | None = None) -> None:
        self.part = "observe"
        self.interrupted = False
        self._options, self._repro, self._variables = options, repro, variables or {}
        self._size = repro_size(repro)
        self._began, self._started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
        self._failing: Build | None = None
        self._environment: shapes.EnvironmentReport | None = None
        self._observed: Observed | None = None
        self._localization: shapes.LocalizationReport | None = None
        self._minimal: shapes.MinimalScript | None = None
        self._conditions: tuple[shapes.Condition, ...] | None = None
        self._bisect: BisectReport | None = None
        self._builds: dict[str, BuildFacts] = {}
        self._unfinished: dict[str, str] = {}
        self._notices: list[str] = []
        self._measured: MeasuredSearch | None = None
        self._kernels: tuple[GeneratedKernels, ...] = ()
        self._flags: tuple[FlagEffect, ...] = ()
        self._remarks: list[str] = []

    @property
    def has_unfinished_parts(self) -> bool:
        """True if a part that was asked for could not finish."""
        return bool(self._unfinished)

    def set_unfinished(self, part: str, reason: str) -> None:
        """Set the reason why a part could not finish."""
        self._unfinished[part] = reason

    def add_notice(self, text: str) -> bool:
        """Add a line for the reader of the report; return True if it is new."""
        new = text not in self._notices
        if new:
            self._notices.append(text)
        return new

    def add_remark(self, text: str) -> None:
        """Add a line for the reader of the search's result."""
        self._remarks.append(text)

    def set_environment(self, build: Build, facts: Facts) -> None:
        """Set the build where the script fails, and the facts of its environment."""
        self._failing = build
        self._environment = environment_part(facts)
        self._builds[build.name] = build_facts_part(build, facts)

    def set_collect_env(self, text: str) -> None:
        """Set the output of torch's ``collect_env`` in that environment."""
        if self._environment is not None:
            self._environment = dataclasses.replace(self._environment, collect_env=text)

    def set_observed(self, observed: Observed) -> None:
        """Set the verdict on the script."""
        self._observed = observed

    def set_localization(self, found: Localization) -> None:
        """Set the part of the compiler that shows the mismatch."""
        self._localization = localization_part(found)

    def set_compiler_pass(self, found: PassFound) -> None:
        """Set the answer of torch's own bisector."""
        if self._localization is not None:
            self._localization = dataclasses.replace(self._localization, compiler_bisector=found)

    def set_shrunk(self, shrunk: ShrunkScript) -> None:
        """Set the shrunk script; a reason why an earlier shrinking could not finish is dropped."""
        self._minimal = minimal_part(shrunk, self._size, self._failing.name if self._failing else "")
        if self._measured is not None:
            command = measuring_command(self._options, files.MINIMAL, shrunk.home.arguments)
            self._minimal = dataclasses.replace(self._minimal, command=command)
        self._unfinished.pop("minimize", None)

    def set_conditions(self, found: Sequence[MeasuredCondition]) -> None:
        """Set the conditions of the shrunk script's mismatch."""
        self._conditions = tuple(
            shapes.Condition(one.description, one.necessary, one.tried, one.shown) for one in found
        )

    def set_search(self, levels: Sequence[Level], facts: Mapping[str, Facts]) -> None:
        """Set the results of the searches, the coarsest channel first, and the facts of the builds by name."""
        self._bisect = bisect_part(levels)
        builds = {build.name: build for level in levels for build in level.listing.builds}
        for name, one in facts.items():
            self._builds.setdefault(name, build_facts_part(builds.get(name, Build(one.torch)), one))

    def add_refinement(self, found: Refinement, facts: Mapping[str, Facts]) -> None:
        """Add one result of the refine stage; ``facts`` as for ``set_search``."""
        if found.levels:
            self.set_search(found.levels, facts)
        if found.remark is not None:
            self.add_remark(found.remark)
        if found.commits is None or self._bisect is None:
            return
        fields = commit_fields(found.commits)
        regression, fix = self._bisect.regression, self._bisect.fix
        if found.kind is BoundaryKind.REGRESSION and regression is not None:
            self._bisect = dataclasses.replace(self._bisect, regression=dataclasses.replace(regression, **fields))
        elif found.kind is BoundaryKind.FIX and fix is not None:
            self._bisect = dataclasses.replace(self._bisect, fix=dataclasses.replace(fix, **fields))

    def add_confirmations(self, runs: Sequence[tuple[Build, PlainRun]]) -> None:
        """Add runs of the shrunk script on other builds."""
        if self._minimal is not None:
            more = tuple(confirmation_part(build.name, run, False) for build, run in runs)
            self._minimal = dataclasses.replace(self._minimal, confirmed=(*self._minimal.confirmed, *more))

    def set_measured(self, search: MeasuredSearch) -> None:
        """Set the measured search whose results the report takes from the journal."""
        self._measured = search

    def set_kernels(self, found: tuple[GeneratedKernels, ...]) -> None:
        """Set the kernels of the minimal script on both builds of a measured search."""
        self._kernels = found

    def set_flags(self, found: tuple[FlagEffect, ...]) -> None:
        """Set the compiler flags that make up for the change of a measured search."""
        self._flags = found

    def set_measured_script(self, repro: Repro | None) -> None:
        """Set the script that the builds of a measured search are asked about: a shrunk one, or the original."""
        if self._measured is not None:
            self._measured = dataclasses.replace(self._measured, repro=repro or self._repro, shrunk=repro is not None)

    def report(self) -> shapes.Report:
        """Return the report of the results so far."""
        observed = self._observed
        state: shapes.ReportState = "interrupted" if self.interrupted else "partial" if self._unfinished else "complete"
        script = self._options.script
        return shapes.Report(
            state=state,
            verdict=observed.verdict if observed else "untestable",
            environment=self._environment,
            command=repeat_command(self._options, _shown(script) if script is not None else None, self._variables),
            original=original_part(self._repro, self._size) if script is not None else None,
            mismatch=mismatch_part(observed) if observed else None,
            localization=self._localization,
            minimal=self._minimal,
            conditions=self._conditions,
            bisect=self._bisect_with_remarks(),
            builds=dict(self._builds),
            arguments=self._repro.arguments,
            unfinished=tuple(shapes.UnfinishedPart(part, reason) for part, reason in self._unfinished.items()),
            logs=logs_part(observed) if observed else None,
            reason=observed.reason if observed else shapes.NOT_OBSERVED,
            notices=tuple(self._notices),
            versions=version_part(),
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._began, 1),
            measurement=self._measurement(),
        )

    def _measurement(self) -> MeasurementReport | None:
        if self._measured is None:
            return None
        names = [self._measured.against, *([self._failing.name] if self._failing else [])]
        if self._bisect is not None:
            found = {*names, *(one.build for one in self._bisect.tested)}
            searched = dataclasses.replace(
                self._bisect, tested=tuple(BuildVerdict(name, "good") for name in sorted(found))
            )
            names = [name for name in builds_in_order(searched, self._builds) if name in found]
        part = self._measured.part(list(dict.fromkeys(names)))
        return dataclasses.replace(part, kernels=self._kernels, flags=self._flags)

    def _bisect_with_remarks(self) -> BisectReport | None:
        if self._bisect is None or not self._remarks:
            return self._bisect
        return dataclasses.replace(self._bisect, notices=(*self._bisect.notices, *self._remarks))


def _shown(script: Path) -> str:
    """Return the name of a script for the command that repeats the run; a test keeps its folder."""
    return str(script) if is_test(script) and not script.is_absolute() else script.name


def mismatch_part(observed: Observed) -> shapes.MismatchReport | None:
    """Return the mismatch of an observation, if it has one."""
    return None if observed.mismatch is None else found_part(observed.mismatch, observed.runs, observed.shown)


def found_part(found: Mismatch, runs: int = 0, shown: int = 0) -> shapes.MismatchReport:
    """Return a mismatch, with the runs that looked for it and those that showed it."""
    signature = found.signature
    return shapes.MismatchReport(
        kind=str(found.kind),
        summary=found.summary,
        signature=signature.to_json(),
        fingerprint=signature.fingerprint,
        place=found.place or None,
        attribute=found.attribute or None,
        eager=found.eager or None,
        compiled=found.compiled or None,
        details=dict(found.detail),
        runs=runs,
        shown=shown,
    )


def logs_part(observed: Observed) -> shapes.Logs:
    """Return the last part of the two runs' standard error, without the paths of this machine."""
    return shapes.Logs(without_machine_paths(observed.eager_log), without_machine_paths(observed.compiled_log))


def environment_part(facts: Facts) -> shapes.EnvironmentReport:
    """Return the facts of the environment where the script failed."""
    return shapes.EnvironmentReport(
        facts.torch, facts.git_version, facts.python, facts.platform, facts.cuda, facts.triton
    )


def localization_part(found: Localization) -> shapes.LocalizationReport:
    """Return the part of the compiler that shows the mismatch, with every question that led to it."""
    return shapes.LocalizationReport(
        backend=found.backend,
        component=found.component,
        settings=_set_values(found.settings),
        fixed_by=tuple(found.fixed_by),
        table=tuple(
            shapes.AblationRow(row.backend, row.text, str(row.verdict.answer), row.verdict.reason, row.verdict.seconds)
            for row in found.table
        ),
    )


def minimal_part(shrunk: ShrunkScript, original: shapes.ScriptSize, build: str) -> shapes.MinimalScript:
    """Return the shrunk script of the build where it fails, with the runs that showed that it stands alone."""
    size, made = script_size(shrunk.text), shrunk.reduction
    return shapes.MinimalScript(
        path=files.MINIMAL,
        bytes=size.bytes,
        lines=size.lines,
        nodes=size.nodes,
        original=original,
        candidates=made.asked,
        seconds=made.seconds,
        source=shrunk.text,
        confirmed=tuple(confirmation_part(build, run, eager) for run, eager in shrunk.runs),
        trajectory=tuple(
            shapes.ReductionStep(asked, round(seconds, 2), size) for asked, seconds, size in made.trajectory
        ),
        stands_alone=shrunk.stands_alone,
        mismatch=found_part(shrunk.mismatch) if shrunk.mismatch is not None else None,
        log=without_machine_paths(shrunk.log),
    )


def confirmation_part(build: str, run: PlainRun, eager: bool) -> shapes.Confirmation:
    """Return one run of the shrunk script under plain Python."""
    return shapes.Confirmation(build, run.status, run.last_words, round(run.seconds, 2), eager)


def original_part(repro: Repro, size: shapes.ScriptSize) -> shapes.OriginalScript:
    """Return the script as the user gave it."""
    return shapes.OriginalScript(repro.name, size.bytes, size.lines, size.nodes, repro.source)


def version_part() -> dict[str, str]:
    """Return the versions of torchbisect, Python and uv."""
    return {
        "torchbisect": __version__,
        "python": platform.python_version(),
        "uv": importlib.metadata.version("uv"),
    }


def _set_values(settings: Settings) -> dict[str, object]:
    """Return the settings that are set, compiler flags by their full name."""
    values = {name: value for name, value in settings.to_json().items() if name != "knobs" and value is not None}
    return {**values, **{f"torch.{name}": value for name, value in settings.knobs}}


def build_facts_part(build: Build, facts: Facts) -> BuildFacts:
    """Return the facts of a build."""
    return BuildFacts(
        facts.torch,
        build.channel.value,
        build.date.isoformat() if build.date else None,
        build.commit or facts.git_version,
        facts.git_version,
        facts.triton,
        facts.cuda,
    )
