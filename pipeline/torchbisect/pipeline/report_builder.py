"""Gathers what the stages found into one report; the only place that knows both the parts' results and its shape."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import importlib.metadata
import platform
import time
from collections.abc import Sequence
from typing import Any

from torchbisect.bisect.search.evidence import AskedBuild, Boundary, BoundaryKind, SearchResult
from torchbisect.bisect.sources.history import PYTORCH, Commit
from torchbisect.containers.environment import Facts
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.version import __version__
from torchbisect.minimizer.explain.conditions import MeasuredCondition
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.bisect import Bisection, Level
from torchbisect.pipeline.stages.commits import Between
from torchbisect.pipeline.stages.minimize import Shrunk
from torchbisect.pipeline.stages.observe import Observed
from torchbisect.probe.localize.backends import Localization
from torchbisect.probe.localize.compiler_bisector import PassFound
from torchbisect.probe.standalone_run import PlainRun, run_plain
from torchbisect.reports import files
from torchbisect.reports.model import report as shapes

# Of a day's worth of commits the report names so many; the compare link has them all.
SUSPECTS = 5


class Draft:
    """A report in the making; ``report`` may be called at any moment.

    Attributes:
        stage: the stage at work, for what could not finish.
        interrupted: somebody ended the run.
        located: which part of the compiler shows it, once that is known.
    """

    def __init__(self, options: Options, repro: Repro) -> None:
        self.stage = "observe"
        self.interrupted = False
        self._options, self._repro = options, repro
        self._began, self._started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
        self._environment: shapes.EnvironmentReport | None = None
        self._failing: Build | None = None
        self._observed: Observed | None = None
        self._localization: shapes.LocalizationReport | None = None
        self._minimal: shapes.MinimalScript | None = None
        self._bisect: shapes.BisectReport | None = None
        self._conditions: tuple[shapes.Condition, ...] | None = None
        self._builds: dict[str, shapes.BuildFacts] = {}
        self._unfinished: dict[str, str] = {}
        self._notices: list[str] = []
        self._remarks: list[str] = []
        self.located: Localization | None = None

    @property
    def parts_left(self) -> bool:
        """Whether a part that was asked for could not finish."""
        return bool(self._unfinished)

    def unfinished(self, part: str, why: str) -> None:
        """Note that a part could not finish."""
        self._unfinished[part] = why

    def notice(self, text: str) -> bool:
        """Note what a reader of the whole should know of how it was come by; whether it is new."""
        new = text not in self._notices
        if new:
            self._notices.append(text)
        return new

    def remark(self, text: str) -> None:
        """Note what a reader of the search's result should know."""
        self._remarks.append(text)

    def environment(self, build: Build, facts: Facts) -> None:
        """Note where the script failed."""
        self._failing = build
        self._environment = shapes.EnvironmentReport(
            facts.torch, facts.git_version, facts.python, facts.platform, facts.cuda, facts.triton
        )
        self._builds[build.name] = _build_facts(build, facts)

    def versions(self, collect_env: str) -> None:
        """Note what torch's own script says of that environment."""
        if self._environment is not None:
            self._environment = dataclasses.replace(self._environment, collect_env=collect_env)

    def observed(self, observed: Observed) -> None:
        """Note what the two runs showed."""
        self._observed = observed

    def localised(self, found: Localization) -> None:
        """Note which part of the compiler shows it."""
        self.located = found
        self._localization = shapes.LocalizationReport(
            backend=found.backend,
            component=found.component,
            settings=_said(found.settings),
            fixed_by=tuple(found.fixed_by),
            table=tuple(
                shapes.AblationRow(
                    row.backend, row.words, str(row.verdict.answer), row.verdict.reason, row.verdict.seconds
                )
                for row in found.table
            ),
        )

    def pass_found(self, found: PassFound) -> None:
        """Note what torch's own bisector says."""
        if self._localization is not None:
            self._localization = dataclasses.replace(self._localization, compiler_bisector=found)

    def shrunk(self, shrunk: Shrunk) -> None:
        """Note the shrunk script and the runs that showed that it stands alone."""
        build = self._failing.name if self._failing else ""
        size, made = size_of(shrunk.text), shrunk.reduction
        self._minimal = shapes.MinimalScript(
            path=files.MINIMAL,
            bytes=size.bytes,
            lines=size.lines,
            nodes=size.nodes,
            original=size_of(self._repro.source),
            candidates=made.asked,
            seconds=made.seconds,
            source=shrunk.text,
            confirmed=tuple(_confirmation(build, run, eager) for run, eager in shrunk.runs),
            trajectory=tuple(
                shapes.ReductionStep(asked, round(seconds, 2), size) for asked, seconds, size in made.trajectory
            ),
            stands_alone=shrunk.stands_alone,
        )
        self._unfinished.pop("minimize", None)

    def explained(self, found: Sequence[MeasuredCondition]) -> None:
        """Note what the shrunk script's neighbours showed."""
        self._conditions = tuple(
            shapes.Condition(one.description, one.necessary, one.tried, one.shown) for one in found
        )

    @property
    def component(self) -> str | None:
        """The compiler stage that localisation named."""
        return self._localization.component if self._localization else None

    def bisected(self, levels: Sequence[Level], bisection: Bisection) -> None:
        """Note what the searches came to, from the coarsest channel to the finest."""
        first = levels[0]
        finest = {kind: _finest(levels, kind) for kind in (BoundaryKind.REGRESSION, BoundaryKind.FIX)}
        regression, fix = finest[BoundaryKind.REGRESSION], finest[BoundaryKind.FIX]
        self._bisect = shapes.BisectReport(
            regression=None if regression is None else _regression(*regression),
            fix=None if fix is None else _fix(*fix),
            tested=tuple(_tested(one) for level in levels for one in level.result.tested),
            notices=_all_notices(levels),
            left_out=tuple(shapes.SkippedBuild(one.version, one.reason) for one in first.listing.left_out),
            listed=tuple(build.name for build in first.listing.builds),
            channel=levels[-1].channel.value,
        )
        named = {build.name: build for level in levels for build in level.listing.builds}
        for name, facts in bisection.build_oracle.facts.items():
            self._builds.setdefault(name, _build_facts(named.get(name, Build(facts.torch)), facts))

    def commits(self, kind: BoundaryKind, between: Between | str) -> None:
        """Note which commits lie between the two ends of an edge, and what asking them came to."""
        if isinstance(between, str):
            self.remark(between)
            return
        if self._bisect is None:
            return
        self.remark(between.words)
        found = between.culprit.commit
        suspects = [_suspect(one.commit, one.reasons) for one in between.suspects[:SUSPECTS]]
        if found is not None:
            laid = "Python files laid over the older build"
            reason = f"the answer changes with this commit's {laid if between.how == 'Python' else between.how}"
            suspects = [_suspect(found, (reason,)), *(one for one in suspects if one.commit != found.sha)]
        more: dict[str, Any] = {"compare": between.span.compare, "suspects": tuple(suspects)}
        more["commit"] = found.sha if found is not None else None
        regression, fix = self._bisect.regression, self._bisect.fix
        if kind is BoundaryKind.REGRESSION and regression is not None:
            self._bisect = dataclasses.replace(self._bisect, regression=dataclasses.replace(regression, **more))
        elif kind is BoundaryKind.FIX and fix is not None:
            self._bisect = dataclasses.replace(self._bisect, fix=dataclasses.replace(fix, **more))

    def confirmed(self, session: Session, shrunk: Shrunk | None, builds: Sequence[Build]) -> None:
        """Run the shrunk script under plain Python on the builds on both sides of each edge, and note what it did."""
        if shrunk is None or self._minimal is None or not shrunk.stands_alone:
            return
        more = []
        for build in builds:
            if self._failing is not None and build.name == self._failing.name:
                continue
            try:
                session.display.status(f"running the shrunk script on torch {build}")
                with session.oracle(build) as probe:
                    run = run_plain(probe.environment, shrunk.text, timeout=probe.limits.longest)
            except InstallFailed:
                continue
            more.append(_confirmation(build.name, run, False))
        self._minimal = dataclasses.replace(self._minimal, confirmed=(*self._minimal.confirmed, *more))

    def report(self) -> shapes.Report:
        """What is known so far."""
        observed = self._observed
        state: shapes.ReportState = "interrupted" if self.interrupted else "partial" if self._unfinished else "complete"
        script = self._options.script
        return shapes.Report(
            state=state,
            verdict=observed.verdict if observed else "untestable",
            environment=self._environment,
            command=repeat_command(self._options, script.name if script is not None else None),
            original=_original(self._repro) if script is not None else None,
            mismatch=observed.for_report() if observed else None,
            localization=self._localization,
            minimal=self._minimal,
            conditions=self._conditions,
            bisect=self._with_remarks(),
            builds=dict(self._builds),
            arguments=self._repro.arguments,
            unfinished=tuple(shapes.UnfinishedPart(part, why) for part, why in self._unfinished.items()),
            logs=observed.logs() if observed else None,
            reason=observed.reason if observed else "not observed yet",
            notices=tuple(self._notices),
            versions=own_versions(),
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._began, 1),
        )

    def _with_remarks(self) -> shapes.BisectReport | None:
        if self._bisect is None or not self._remarks:
            return self._bisect
        return dataclasses.replace(self._bisect, notices=(*self._bisect.notices, *self._remarks))


def _original(repro: Repro) -> shapes.OriginalScript:
    size = size_of(repro.source)
    return shapes.OriginalScript(repro.name, size.bytes, size.lines, size.nodes, repro.source)


def size_of(source: str) -> shapes.ScriptSize:
    """How big a script is."""
    nodes = sum(1 for _ in ast.walk(ast.parse(source)))
    return shapes.ScriptSize(len(source.encode()), len(source.splitlines()), nodes)


def own_versions() -> dict[str, str]:
    """torchbisect's own version, and those of what decides its results."""
    return {
        "torchbisect": __version__,
        "python": platform.python_version(),
        "uv": importlib.metadata.version("uv"),
    }


def _finest(levels: Sequence[Level], kind: BoundaryKind) -> tuple[Boundary[Build], Level] | None:
    """The edge of the finest channel in which it was found."""
    for level in reversed(levels):
        boundary = level.result.regression if kind is BoundaryKind.REGRESSION else level.result.fix
        if boundary is not None:
            return boundary, level
    return None


def _regression(boundary: Boundary[Build], level: Level) -> shapes.Regression:
    return shapes.Regression(_name(boundary.before), _name(boundary.after), **_alike(boundary, level))


def _fix(boundary: Boundary[Build], level: Level) -> shapes.Fix:
    return shapes.Fix(_name(boundary.before), _name(boundary.after), **_alike(boundary, level))


def _alike(boundary: Boundary[Build], level: Level) -> dict[str, Any]:
    """What both kinds of edge have."""
    between, skipped = _inside(boundary, level.result)
    return {
        "between": between,
        "skipped": skipped,
        "exact": boundary.exact,
        "words": boundary.sentence,
        "confidence": boundary.confidence,
    }


def _inside(
    boundary: Boundary[Build], result: SearchResult[Build]
) -> tuple[tuple[str, ...], tuple[shapes.SkippedBuild, ...]]:
    between = tuple(skipped.item.name for skipped in boundary.between)
    skipped = {one.item.name: one.reason for one in boundary.between}
    skipped.update({one.item.name: one.reason or "" for one in result.tested if not one.status.testable})
    return between, tuple(shapes.SkippedBuild(name, reason) for name, reason in skipped.items())


def _tested(one: AskedBuild[Build]) -> shapes.BuildVerdict:
    return shapes.BuildVerdict(one.item.name, one.status.value, one.reason, round(one.seconds, 2), one.detail)


def _all_notices(levels: Sequence[Level]) -> tuple[str, ...]:
    notices: list[str] = []
    for level in levels:
        notices += level.result.notices
        for boundary in (level.result.regression, level.result.fix):
            notices += boundary.notices if boundary else ()
    if len(levels) > 1:
        boundaries = (levels[0].result.regression, levels[0].result.fix)
        notices += [
            f"among {levels[0].channel}s: {boundary.sentence}" for boundary in boundaries if boundary is not None
        ]
    return tuple(dict.fromkeys(notices))


def _suspect(commit: Commit, reasons: tuple[str, ...]) -> shapes.SuspectCommit:
    return shapes.SuspectCommit(commit.sha, commit.subject, f"{PYTORCH}/commit/{commit.sha}", reasons)


def _name(build: Build | None) -> str | None:
    return None if build is None else build.name


def _said(settings: Settings) -> dict[str, object]:
    """Only what is set, knobs by their full name."""
    said = {name: value for name, value in settings.to_json().items() if name != "knobs" and value is not None}
    return {**said, **{f"torch.{name}": value for name, value in settings.knobs}}


def _confirmation(build: str, run: PlainRun, eager: bool) -> shapes.Confirmation:
    return shapes.Confirmation(build, run.status, run.last_words, round(run.seconds, 2), eager)


def _build_facts(build: Build, facts: Facts) -> shapes.BuildFacts:
    return shapes.BuildFacts(
        facts.torch,
        build.channel.value,
        build.date.isoformat() if build.date else None,
        build.commit or facts.git_version,
        facts.git_version,
        facts.triton,
        facts.cuda,
    )
