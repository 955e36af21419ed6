"""Gathers what the stages found into one report; the only place that knows both the parts' results and its shape."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import importlib.metadata
import platform
import time

from torchbisect.bisect.channels.listing import Listing
from torchbisect.bisect.search import Edge, Findings
from torchbisect.cli.bisecting import Bisection, edge_builds
from torchbisect.cli.minimizing import Shrunk
from torchbisect.cli.observing import Observed
from torchbisect.cli.options import Options, repeat_command
from torchbisect.cli.tools import Tools
from torchbisect.cli.workspace import MINIMAL
from torchbisect.containers.builds import Build
from torchbisect.containers.environments import Facts
from torchbisect.containers.errors import InstallFailed
from torchbisect.probe.localise import Localisation
from torchbisect.probe.plain import PlainRun, run_plain
from torchbisect.probe.repro import Repro, Settings
from torchbisect.probe.version import __version__
from torchbisect.reports import report as shapes


class Draft:
    """A report in the making; ``report`` may be called at any moment.

    Attributes:
        stage: the stage at work, for what could not finish.
        interrupted: somebody ended the run.
    """

    def __init__(self, options: Options, repro: Repro) -> None:
        self.stage = "observe"
        self.interrupted = False
        self._options, self._repro = options, repro
        self._began, self._started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
        self._environment: shapes.Environment | None = None
        self._failing: Build | None = None
        self._observed: Observed | None = None
        self._localisation: shapes.Localisation | None = None
        self._minimal: shapes.Minimal | None = None
        self._bisect: shapes.Bisect | None = None
        self._builds: dict[str, shapes.BuildFacts] = {}
        self._unfinished: dict[str, str] = {}
        self._notices: list[str] = []

    @property
    def parts_left(self) -> bool:
        """Whether a part that was asked for could not finish."""
        return bool(self._unfinished)

    def unfinished(self, part: str, why: str) -> None:
        """Note that a part could not finish."""
        self._unfinished[part] = why

    def notice(self, text: str) -> None:
        """Note what a reader of the search's result should know."""
        self._notices.append(text)

    def environment(self, build: Build, facts: Facts, collect_env: str | None = None) -> None:
        """Note where the script failed."""
        self._failing = build
        self._environment = shapes.Environment(
            facts.torch, facts.git_version, facts.python, facts.platform, facts.cuda, facts.triton, collect_env
        )
        self._builds[build.name] = _build_facts(build, facts)

    def observed(self, observed: Observed) -> None:
        """Note what the two runs showed."""
        self._observed = observed

    def localised(self, found: Localisation) -> None:
        """Note which part of the compiler shows it."""
        self._localisation = shapes.Localisation(
            backend=found.backend,
            component=found.component,
            settings=_said(found.settings),
            fixed_by=tuple(found.fixed_by),
            table=tuple(
                shapes.Row(row.backend, row.words, str(row.verdict.answer), row.verdict.reason, row.verdict.seconds)
                for row in found.table
            ),
        )

    def shrunk(self, shrunk: Shrunk) -> None:
        """Note the shrunk script and the runs that showed that it stands alone."""
        build = self._failing.name if self._failing else ""
        size, made = size_of(shrunk.text), shrunk.reduction
        self._minimal = shapes.Minimal(
            path=MINIMAL,
            bytes=size.bytes,
            lines=size.lines,
            nodes=size.nodes,
            original=size_of(self._repro.source),
            candidates=made.asked,
            seconds=made.seconds,
            source=shrunk.text,
            confirmed=tuple(_confirmation(build, run, eager) for run, eager in shrunk.runs),
            trajectory=tuple(shapes.Step(asked, round(seconds, 2), size) for asked, seconds, size in made.trajectory),
            stands_alone=shrunk.stands_alone,
        )
        self._unfinished.pop("minimize", None)

    def bisected(self, findings: Findings[Build], bisection: Bisection, listing: Listing) -> None:
        """Note what the search came to."""
        regression, fix = findings.regression, findings.fix
        self._bisect = shapes.Bisect(
            regression=None
            if regression is None
            else shapes.Regression(
                _name(regression.before),
                _name(regression.after),
                *_inside(regression, findings),
                words=regression.words,
            ),
            fix=None
            if fix is None
            else shapes.Fix(_name(fix.before), _name(fix.after), *_inside(fix, findings), words=fix.words),
            tested=tuple(
                shapes.Tested(one.item.name, one.status.value, one.reason, round(one.seconds, 2), one.detail)
                for one in findings.tested
            ),
            notices=_all_notices(findings),
            left_out=tuple(shapes.Skip(one.version, one.reason) for one in listing.left_out),
            listed=tuple(build.name for build in listing.builds),
        )
        named = {build.name: build for build in listing.builds}
        for name, facts in bisection.facts.items():
            self._builds.setdefault(name, _build_facts(named[name], facts) if name in named else _unlisted(name, facts))

    def confirmed(self, tools: Tools, shrunk: Shrunk | None, findings: Findings[Build]) -> None:
        """Run the shrunk script under plain Python on the builds on both sides of each edge, and note what it did."""
        if shrunk is None or self._minimal is None or not shrunk.stands_alone:
            return
        more = []
        for build in edge_builds(findings):
            if self._failing is not None and build.name == self._failing.name:
                continue
            try:
                tools.display.status(f"running the shrunk script on torch {build}")
                with tools.probe(build) as probe:
                    run = run_plain(probe.environment, shrunk.text, timeout=probe.limits.longest)
            except InstallFailed:
                continue
            more.append(_confirmation(build.name, run, False))
        self._minimal = dataclasses.replace(self._minimal, confirmed=(*self._minimal.confirmed, *more))

    def report(self) -> shapes.Report:
        """What is known so far."""
        observed = self._observed
        state: shapes.State = "interrupted" if self.interrupted else "partial" if self._unfinished else "complete"
        size = size_of(self._repro.source)
        return shapes.Report(
            state=state,
            verdict=observed.verdict if observed else "untestable",
            environment=self._environment,
            command=repeat_command(self._options, self._options.script.name),
            original=shapes.Original(self._repro.name, size.bytes, size.lines, size.nodes, self._repro.source),
            mismatch=observed.for_report() if observed else None,
            localisation=self._localisation,
            minimal=self._minimal,
            bisect=self._with_notices(),
            builds=dict(self._builds),
            arguments=self._repro.arguments,
            unfinished=tuple(shapes.Unfinished(part, why) for part, why in self._unfinished.items()),
            logs=observed.logs() if observed else None,
            reason=observed.reason if observed else "not observed yet",
            versions=versions(),
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._began, 1),
        )

    def _with_notices(self) -> shapes.Bisect | None:
        if self._bisect is None or not self._notices:
            return self._bisect
        return dataclasses.replace(self._bisect, notices=(*self._bisect.notices, *self._notices))


def size_of(source: str) -> shapes.Size:
    """How big a script is."""
    nodes = sum(1 for _ in ast.walk(ast.parse(source)))
    return shapes.Size(len(source.encode()), len(source.splitlines()), nodes)


def versions() -> dict[str, str]:
    """torchbisect's own version, and those of what decides its results."""
    return {
        "torchbisect": __version__,
        "python": platform.python_version(),
        "uv": importlib.metadata.version("uv"),
    }


def _name(build: Build | None) -> str | None:
    return None if build is None else build.name


def _inside(edge: Edge[Build], findings: Findings[Build]) -> tuple[tuple[str, ...], tuple[shapes.Skip, ...], bool]:
    between = tuple(skipped.item.name for skipped in edge.between)
    skipped = {one.item.name: one.reason for one in edge.between}
    skipped.update({one.item.name: one.reason or "" for one in findings.tested if not one.status.testable})
    return between, tuple(shapes.Skip(name, reason) for name, reason in skipped.items()), edge.exact


def _all_notices(findings: Findings[Build]) -> tuple[str, ...]:
    notices = list(findings.notices)
    for edge in (findings.regression, findings.fix):
        notices += edge.notices if edge else ()
    return tuple(dict.fromkeys(notices))


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


def _unlisted(name: str, facts: Facts) -> shapes.BuildFacts:
    return shapes.BuildFacts(facts.torch, git_version=facts.git_version, triton=facts.triton, cuda=facts.cuda)
