"""One run over one script, stage by stage: what each stage needs, what is kept when one can't finish, how it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from torchbisect.bisect.search.evidence import Boundary, BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.exit_codes import Exit
from torchbisect.core.mismatch import MismatchKind
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.explain.conditions import find_conditions
from torchbisect.pipeline.flaky_search import MismatchRate
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.provider import Provider
from torchbisect.pipeline.report_builder import Draft
from torchbisect.pipeline.script_input import on_device, read_script
from torchbisect.pipeline.search_scope import failing_build
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.bisect import Bisection, Level, boundary_builds, telling_builds
from torchbisect.pipeline.stages.commits import Commits
from torchbisect.pipeline.stages.dependencies import Dependencies
from torchbisect.pipeline.stages.localize import pass_of
from torchbisect.pipeline.stages.minimize import Shrunk, Subject, Witness, shrink
from torchbisect.pipeline.stages.observe import Observed, each_time, observe
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.localize.backends import localize
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.question import Question
from torchbisect.probe.test_command import NO_SCRIPT
from torchbisect.reports.model.report import Report
from torchbisect.reports.render.terminal import summary

# So often a shrunk script that has another history than the original is shrunk again with that build as a witness.
WITNESSES = 2
OpenProvider = Callable[[Options, Display], Provider]
# A script that is right but slow, or that a test has to judge, does not fail under plain python, and can't be made to.
_SAYS_NOTHING_BY_ITSELF = (MismatchKind.SLOW, MismatchKind.COMMAND)


@dataclass(frozen=True)
class Stages:
    """Which stages a command goes through, after the observation that all begin with."""

    localise: bool
    minimize: bool
    bisect: bool
    explain: bool = False


def stages_of(options: Options) -> Stages:
    """The stages of the command that was typed."""
    # A test compiles as it likes, so there are no settings to vary round it.
    compared = options.test is None
    return {
        "run": Stages(compared, options.minimize and options.script is not None, options.bisect, options.explain),
        "check": Stages(compared, False, False),
        "minimize": Stages(compared, True, False),
        "explain": Stages(compared, True, False, True),
        "bisect": Stages(False, False, True),
    }[options.command]


def repro_of(options: Options) -> Repro:
    """The script that was typed, with all that decides how it runs.

    Raises:
        InputError: it can't be used.
    """
    script = options.script
    if script is None:
        return NO_SCRIPT
    source = on_device(read_script(script), options.device)
    return Repro(source, options.arguments, options.seed, str(script.resolve().parent), script.name)


class Pipeline:
    """A run.

    Args:
        options: what was typed.
        display: told what goes on; standard error by default.
        open_provider: opens the provider of builds and answers; a test passes one that answers from a table.

    Raises:
        TorchbisectError: what was typed can't be used, or the machine failed before anything could be kept.
    """

    def __init__(
        self, options: Options, display: Display | None = None, open_provider: OpenProvider = LocalProvider
    ) -> None:
        self.options = options
        self.stages = stages_of(options)
        self.display = display or Display(options.verbosity)
        self.repro = repro_of(options)
        self.draft = Draft(options, self.repro)
        self.provider = open_provider(options, self.display)
        self._written: tuple[Path, ...] = ()

    def _notice(self, text: str) -> None:
        """What a reader of the result should know, once."""
        if self.draft.notice(text):
            self.display.warn(text)

    def execute(self) -> int:
        """Go through the stages; returns the exit code. What was found is on disk at the end of every stage."""
        with _stopping_gently(), ExitStack() as stack:
            stack.callback(self.provider.close)
            self.session = Session.open(self.options, self.display, self.provider, self._notice)
            try:
                code = self._go(stack)
            except KeyboardInterrupt:
                self.draft.interrupted = True
                code = Exit.INTERRUPTED
                self.display.warn("interrupted: give the same command again and it goes on where it stopped")
            except TorchbisectError as error:
                self.draft.unfinished(self.draft.stage, str(error))
                self._save()
                raise
            self._save()
        return code

    def _go(self, stack: ExitStack) -> Exit:
        self.draft.stage = "observe"
        with self.display.stage("Observe"):
            failing = failing_build(self.options, self.session.channels)
            self.display.status(f"preparing torch {failing}")
            probe = stack.enter_context(self.session.failing_oracle(failing))
            self.draft.environment(failing, probe.environment.facts)
            observed = observe(probe, self.repro, self.display, self._notice)
            self.draft.observed(observed)
        self._save()
        observed, settings = self._localise(probe, observed)
        self.draft.observed(observed)
        self._save()
        if observed.mismatch is None or observed.verdict != "mismatch":
            if observed.verdict == "flaky" and observed.mismatch is not None and self.stages.bisect:
                self._bisect(probe, failing, observed, Settings(), None)
                self._describe(probe)
            return self._without_mismatch(observed)
        shrunk = self._minimize(probe, observed, settings)
        self._name_pass(probe, observed, shrunk)
        if self.stages.explain and shrunk is not None:
            self._explain(probe, observed, shrunk)
        if self.stages.bisect:
            self._bisect(probe, failing, observed, settings, shrunk)
        self._describe(probe)
        return Exit.PARTIAL if self.draft.parts_left else Exit.FINISHED

    def _describe(self, probe: Oracle) -> None:
        """What PyTorch's issue form asks for under Versions, as torch's own script says it in that environment."""
        self.draft.stage = "report"
        with self.display.stage("Report"):
            self.display.status("collecting the versions")
            said = self.provider.collect_env(probe.environment)
            if said is not None:
                self.draft.versions(said)

    def _without_mismatch(self, observed: Observed) -> Exit:
        if observed.verdict == "none":
            return Exit.NO_MISMATCH
        self.display.error(f"{self.options.script or '--test'}: {observed.reason}")
        if observed.verdict == "flaky":
            return Exit.FLAKY
        return Exit.MACHINE if observed.machine_at_fault else Exit.INPUT

    def _localise(self, probe: Oracle, observed: Observed) -> tuple[Observed, Settings]:
        """What was observed with its runs counted, and the cheapest settings that show it each time."""
        mismatch = observed.mismatch
        if mismatch is None or observed.verdict != "mismatch":
            return observed, Settings()
        if not self.stages.localise or not probe.compares_eager:
            return each_time(probe, self.repro, observed, Settings(), self.display), Settings()
        self.draft.stage = "localise"
        with self.display.stage("Localise"):
            found = localize(probe, self.repro, mismatch, self.display.status)
            counted = each_time(probe, self.repro, observed, found.settings, self.display)
            if counted.verdict == "flaky":
                # Perhaps only on these settings, or only in warm processes, which from here on are asked no more.
                counted = each_time(probe, self.repro, observed, Settings(), self.display)
                if counted.verdict == "flaky":
                    return counted, Settings()
                found = replace(localize(probe, self.repro, mismatch, self.display.status), settings=Settings())
            self.draft.localised(found)
            self.display.result(
                f"backend {found.backend or 'as given'}"
                + (f", component {found.component}" if found.component else "")
                + (f"; goes away with {found.fixed_by[0]}" if found.fixed_by else "")
            )
        return counted, found.settings

    def _name_pass(self, probe: Oracle, observed: Observed, shrunk: Shrunk | None) -> None:
        """The pass or operator, for the smallest script that fails by itself."""
        alone = shrunk is not None and shrunk.stands_alone
        if self.draft.located is None or not (alone or (observed.fails_by_itself and not self.repro.arguments)):
            return
        self.draft.stage = "localise"
        script = shrunk.text if shrunk is not None and alone else self.repro.source
        with self.display.stage("Name the pass"):
            found = pass_of(self.session, probe.environment, self.draft.located, script, self.repro.seed)
            if found is not None:
                self.draft.pass_found(found)
                self.display.result(f"torch's compiler_bisector: {found.text}")
        self._save()

    def _minimize(
        self, probe: Oracle, observed: Observed, settings: Settings, witnesses: tuple[Witness, ...] = ()
    ) -> Shrunk | None:
        if not self.stages.minimize or observed.mismatch is None:
            return None
        self.draft.stage = "minimize"
        again = " again, keeping its history" if witnesses else ""
        with self.display.stage(f"Minimize{again}"):
            subject = Subject(self.repro, observed.mismatch, settings)
            shrunk = shrink(self.session, probe, subject, witnesses)
            small = Question(shrunk.repro(self.repro), observed.mismatch.signature, shrunk.settings)
            if not shrunk.stands_alone and not probe.fresh_process_agrees(small):
                # What it was shrunk to stands on answers that only forked processes give: once more with fresh ones.
                shrunk = shrink(self.session, probe, subject, witnesses)
            self.draft.shrunk(shrunk)
            made = shrunk.reduction
            self.display.result(
                f"{len(self.repro.source.encode())} bytes to {len(shrunk.text.encode())}, "
                f"{len(shrunk.text.splitlines())} lines, after {made.asked} questions"
            )
            if not made.finished:
                spent = f"stopped at --budget {self.options.budget}; it may shrink further"
                self.display.result(spent)
                self.draft.unfinished("minimize", spent)
            if not shrunk.stands_alone and observed.mismatch.kind not in _SAYS_NOTHING_BY_ITSELF:
                self.draft.unfinished("minimize", "the shrunk script does not fail by itself under plain python")
        self._save()
        return shrunk

    def _explain(self, probe: Oracle, observed: Observed, shrunk: Shrunk) -> None:
        assert observed.mismatch is not None
        self.draft.stage = "explain"
        with self.display.stage("Explain"):
            question = Question(shrunk.repro(self.repro), observed.mismatch.signature, shrunk.settings)

            def ask(source: str) -> Verdict:
                self.display.status("asking the shrunk script's neighbours")
                return probe.ask(question.with_source(source))

            found = find_conditions(question.repro.source, ask)
            self.draft.explained(found)
            for condition in found:
                if condition.necessary:
                    self.display.result(f"{condition.description}: {condition.shown} of {condition.tried} otherwise")
        self._save()

    def _bisect(
        self, probe: Oracle, failing: Build, observed: Observed, settings: Settings, shrunk: Shrunk | None
    ) -> None:
        assert observed.mismatch is not None
        self.draft.stage = "bisect"
        rate = MismatchRate(observed.shown, observed.runs)
        bisection = Bisection(self.session, failing, self.draft.component, rate)
        signature = observed.mismatch.signature
        original = Question(self.repro, signature, strictness=Strictness.TOLERANT)
        with ExitStack() as stack:
            witnesses: dict[str, Witness] = {}
            while True:
                question = original
                if shrunk is not None:
                    question = replace(original, repro=shrunk.repro(self.repro), settings=shrunk.settings)
                with self.display.stage("Bisect"):
                    level = bisection.search(question)
                    self.draft.bisected([level], bisection)
                    odd = self._disagreement(bisection, original, question, level) if shrunk else None
                self._save()
                if odd is None:
                    break
                build, finding = odd
                if len(witnesses) >= WITNESSES or build.name in witnesses:
                    self.display.warn("the shrunk script's history is not the original's: bisecting the original")
                    self.draft.remark(
                        f"the builds were asked with the original script: on torch {build} the shrunk script does not "
                        "show what the original shows"
                    )
                    shrunk = None
                    continue
                self.display.warn(f"torch {build} is {finding.status} for the original and not for the shrunk script")
                witnesses[build.name] = Witness(stack.enter_context(self.session.oracle(build)), finding.status)
                shrunk = self._minimize(probe, observed, settings, tuple(witnesses.values()))
                self.draft.stage = "bisect"
        self._refine(bisection, level, question)
        with self.display.stage("Confirm"):
            self.draft.confirmed(self.session, shrunk, boundary_builds(level.result))

    def _refine(self, bisection: Bisection, level: Level, question: Question) -> None:
        """From releases to nightlies, and from nightlies to commits, as far as can be reached and was asked for."""
        levels = [level]
        commits = Commits(self.session, bisection.build_oracle, self.draft.component)
        dependencies = Dependencies(self.session, bisection.build_oracle, self.draft.component)
        for boundary in (level.result.regression, level.result.fix):
            if boundary is None:
                continue
            self.display.result(boundary.sentence)
            finer = self._finer(bisection, level, boundary, question)
            if finer is not None:
                levels.append(finer)
                self.draft.bisected(levels, bisection)
            finest = finer or level
            narrowed = finest.result.regression if boundary.kind is BoundaryKind.REGRESSION else finest.result.fix
            certain = narrowed is not None and not narrowed.open and not bisection.flaky
            if narrowed is not None and certain:
                for notice in dependencies.notices(narrowed, question):
                    self.draft.remark(notice)
                    self.display.result(notice)
            if finest.channel is Channel.NIGHTLY and narrowed is not None and certain and commits.wanted:
                with self.display.stage(f"Commits of the {boundary.kind}"):
                    between = commits.between(narrowed, question)
                self.draft.commits(boundary.kind, between)
                self.display.result(between if isinstance(between, str) else between.words)
            self._save()

    def _finer(self, bisection: Bisection, level: Level, boundary: Boundary[Build], question: Question) -> Level | None:
        if not bisection.has_finer(level, boundary):
            return None
        with self.display.stage(f"Bisect nightlies for the {boundary.kind}"):
            finer = bisection.finer(boundary, question)
            if isinstance(finer, str):
                self.display.result(finer)
                self.draft.remark(finer)
                return None
        return finer

    def _disagreement(
        self, bisection: Bisection, original: Question, question: Question, level: Level
    ) -> tuple[Build, BuildAnswer] | None:
        """The first build at an edge where the original says something that the shrunk script does not."""
        for build in telling_builds(level.result):
            said = bisection.ask(build, original)
            if said.status is not BuildStatus.UNTESTABLE and said.status is not bisection.ask(build, question).status:
                return build, said
        return None

    def _save(self) -> None:
        self._written = self.session.workspace.save(self.draft.report())

    @property
    def report(self) -> Report:
        """What is known so far."""
        return self.draft.report()

    def show(self) -> None:
        """Print what was found, as it was asked for."""
        report = self.report
        if self.options.as_json:
            click.echo(json.dumps(report.to_json(), indent=2))
        else:
            Console(highlight=False, soft_wrap=True).print(summary(report, self._written))


@contextmanager
def _stopping_gently() -> Iterator[None]:
    """A request to end (``kill``, a closed terminal) is taken like Ctrl-C: what was found is kept."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {name: signal.signal(name, stop) for name in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
