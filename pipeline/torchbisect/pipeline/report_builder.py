"""The report builder: collects the results of the stages, and makes a report of them at any moment."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Mapping, Sequence

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.containers.environment import Facts
from torchbisect.core.build import Build
from torchbisect.core.repro import Repro
from torchbisect.minimizer.explain.conditions import MeasuredCondition
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.pipeline.report_parts import (
    bisect_part,
    build_facts_part,
    commit_fields,
    confirmation_part,
    environment_part,
    localization_part,
    logs_part,
    minimal_part,
    mismatch_part,
    original_part,
    version_part,
)
from torchbisect.pipeline.stages.bisect import Level
from torchbisect.pipeline.stages.minimize import ShrunkScript
from torchbisect.pipeline.stages.observe import Observed
from torchbisect.pipeline.stages.refine import Refinement
from torchbisect.probe.localize.backends import Localization
from torchbisect.probe.localize.compiler_bisector import PassFound
from torchbisect.probe.standalone_run import PlainRun
from torchbisect.reports.model import report as shapes
from torchbisect.reports.model.search_results import BisectReport, BuildFacts


class ReportBuilder:
    """Collects results; runs nothing.

    Attributes:
        part: the part of the run that is at work, for the list of unfinished parts.
        interrupted: the user has ended the run.

    Args:
        options: the options of the run.
        repro: the script.
    """

    def __init__(self, options: Options, repro: Repro) -> None:
        self.part = "observe"
        self.interrupted = False
        self._options, self._repro = options, repro
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
        self._minimal = minimal_part(shrunk, self._repro.source, self._failing.name if self._failing else "")
        self._unfinished.pop("minimize", None)

    def set_conditions(self, found: Sequence[MeasuredCondition]) -> None:
        """Set the conditions of the shrunk script's mismatch."""
        self._conditions = tuple(
            shapes.Condition(one.description, one.necessary, one.tried, one.shown) for one in found
        )

    def set_search(self, levels: Sequence[Level], facts: Mapping[str, Facts]) -> None:
        """Set the results of the searches.

        Args:
            levels: the results, from the coarsest channel to the finest.
            facts: the facts of the builds that were installed, by name.
        """
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

    def report(self) -> shapes.Report:
        """Return the report of the results so far."""
        observed = self._observed
        state: shapes.ReportState = "interrupted" if self.interrupted else "partial" if self._unfinished else "complete"
        script = self._options.script
        return shapes.Report(
            state=state,
            verdict=observed.verdict if observed else "untestable",
            environment=self._environment,
            command=repeat_command(self._options, script.name if script is not None else None),
            original=original_part(self._repro) if script is not None else None,
            mismatch=mismatch_part(observed) if observed else None,
            localization=self._localization,
            minimal=self._minimal,
            conditions=self._conditions,
            bisect=self._bisect_with_remarks(),
            builds=dict(self._builds),
            arguments=self._repro.arguments,
            unfinished=tuple(shapes.UnfinishedPart(part, reason) for part, reason in self._unfinished.items()),
            logs=logs_part(observed) if observed else None,
            reason=observed.reason if observed else "not observed yet",
            notices=tuple(self._notices),
            versions=version_part(),
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._began, 1),
        )

    def _bisect_with_remarks(self) -> BisectReport | None:
        if self._bisect is None or not self._remarks:
            return self._bisect
        return dataclasses.replace(self._bisect, notices=(*self._bisect.notices, *self._remarks))
