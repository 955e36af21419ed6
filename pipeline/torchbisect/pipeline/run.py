"""A run over one script: the stages in their order, and a report on disk after each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import unique_folder
from torchbisect.core.build import Build
from torchbisect.core.errors import Exit, TorchbisectError
from torchbisect.core.printable import clean
from torchbisect.core.repro import Settings
from torchbisect.core.timing import collected
from torchbisect.pipeline.flaky_search import MismatchRate
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.measurement_part import MeasuredSearch
from torchbisect.pipeline.options import Options, is_test
from torchbisect.pipeline.profile import profile_lines
from torchbisect.pipeline.progress import INTERRUPTED, Display
from torchbisect.pipeline.provider import Provider
from torchbisect.pipeline.report_builder import ReportBuilder
from torchbisect.pipeline.script import opened_repro
from torchbisect.pipeline.script_packages import with_found_packages
from torchbisect.pipeline.search_scope import failing_build, named_build, reference_build
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.bisect import Bisection, boundary_builds, good_builds
from torchbisect.pipeline.stages.confirm import confirm_on_builds
from torchbisect.pipeline.stages.explain import explain_mismatch
from torchbisect.pipeline.stages.flags import find_flags
from torchbisect.pipeline.stages.handover import begin_trace, write_test, write_trace
from torchbisect.pipeline.stages.kernels import compare_kernels
from torchbisect.pipeline.stages.localize import (
    Localized,
    find_avoiding_settings,
    find_compiler_pass,
    localize_mismatch,
)
from torchbisect.pipeline.stages.minimize import ShrunkScript, Subject, Witness, shrink_trusted, unfinished_reason
from torchbisect.pipeline.stages.observe import Observed, count_runs, last_lines, observe, unrunnable
from torchbisect.pipeline.stages.refine import refine
from torchbisect.pipeline.stages.witness_search import search_history
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.reports.model.report import Report
from torchbisect.reports.sanitize import without_machine_paths
from torchbisect.reports.scrubbed import scrubbed

OpenProvider = Callable[[Options, Display], Provider]


@dataclass(frozen=True)
class Stages:
    """The stages of a command, after the observation that every command begins with."""

    localize: bool
    minimize: bool
    bisect: bool
    explain: bool = False


def stages_of(options: Options) -> Stages:
    """Return the stages of the command that was typed."""
    # A test compiles as it likes, so there are no settings to vary.
    compared = options.test is None and options.measure is None
    return {
        "run": Stages(compared, options.minimize and options.script is not None, options.bisect, options.explain),
        "check": Stages(compared, False, False),
        "minimize": Stages(compared, True, False),
        "explain": Stages(compared, True, False, True),
        "bisect": Stages(False, False, True),
        "suite": Stages(False, False, False),  # each test is observed, and one of each group is taken through "run"
    }[options.command]


class Pipeline:
    """A run over one script.

    Attributes:
        written: the files of the last report that was saved.

    Args:
        display: shows the progress; on standard error by default.
        open_provider: opens the provider of builds and answers. A test passes one that answers from a table.
        known: fingerprints of signatures; a mismatch with one of them is named and neither shrunk nor searched for.

    Raises:
        TorchbisectError: an option can't be used, or this machine can't do its part.
    """

    def __init__(
        self,
        options: Options,
        display: Display | None = None,
        open_provider: OpenProvider = LocalProvider,
        known: Collection[str] = (),
    ) -> None:
        self.written: tuple[Path, ...] = ()
        self._known = known
        self._stages = stages_of(options)
        self._display = display or Display(options.verbosity)
        with self._display.working("Reading the script"):
            self._folder = unique_folder("files")
            opened = opened_repro(options, self._folder)
            self._repro, self._notes = opened.repro, opened.notes
            self._options = options = with_found_packages(options, self._repro, self._display.line)
            self._builder = ReportBuilder(options, self._repro, opened.variables)
            self._provider = open_provider(options, self._display)

    @property
    def report(self) -> Report:
        """The report of the results so far, as it may be shown."""
        return scrubbed(self._builder.report())

    def execute(self) -> int:
        """Go through the stages and return the exit code. The results are on disk at the end of every stage.

        Raises:
            TorchbisectError: a stage failed; the results of those before it are on disk.
        """
        with ExitStack() as stack:
            stack.enter_context(self._display.working(self._options.command.capitalize()))
            if self._options.profile:
                spans = stack.enter_context(collected())
                stack.callback(lambda: self._display.lines(profile_lines(spans)))
            stack.callback(remove_tree, self._folder)
            stack.callback(self._provider.close)
            self._session = Session.open(self._options, self._display, self._provider, self._notify)
            stack.callback(self._session.workspace.close)
            stack.enter_context(self._session.background)
            try:
                code = self._run_stages(stack)
            except KeyboardInterrupt:
                self._session.background.cancel.set()
                self._builder.interrupted = True
                code = Exit.INTERRUPTED
                self._display.warn(INTERRUPTED)
            except TorchbisectError as error:
                self._builder.set_unfinished(self._builder.part, str(error))
                self._save()
                raise
            self._save()
        return code

    def _run_stages(self, stack: ExitStack) -> Exit:
        with self._stage("observe", "Observe"):
            failing = failing_build(self._options, self._session.sources, self._notify)
            for note in self._notes:
                self._notify(note)
            self._prepare_measuring()
            missing = unrunnable(self._options, self._session.sources.interpreter, failing, self._repro)
            if missing is not None:
                self._builder.set_observed(missing)
                return self._exit_without_mismatch(missing)
            self._say_if_pytest_is_added(failing)
            # The user of "bisect" says that it fails. An index that is waited for in vain is asked only once more.
            listed = self._options.command != "bisect" or Bisection(self._session, failing).begin_first_install()
            self._display.status(f"preparing torch {failing}")
            oracle = stack.enter_context(self._session.failing_oracle(failing))
            self._builder.set_environment(failing, oracle.environment.facts)
            if self._stages.localize:
                oracle.prepare_fresh_process(self._repro)
            observed = observe(self._session, oracle, self._repro)
            self._builder.set_observed(observed)
        if observed.certain_mismatch is not None:
            oracle.prepare_fresh_process(self._repro)
        known = observed.certain_mismatch is not None and (
            observed.certain_mismatch.signature.fingerprint in self._known
        )
        localized = self._localize(oracle, observed, known=known)
        observed = localized.observed
        if observed.certain_mismatch is None:
            if observed.mismatch is not None and observed.verdict == "flaky" and self._stages.bisect:
                subject = Subject(self._repro, observed.mismatch, Settings())
                self._bisect(oracle, self._opened_bisection(failing, localized), subject, localized, None)
                self._collect_versions(oracle)
            return self._exit_without_mismatch(observed)
        if known:
            self._notify("this mismatch is known already, so the script was neither shrunk nor searched for")
            return Exit.FINISHED
        subject = Subject(self._repro, observed.certain_mismatch, localized.settings, localized.localization)
        bisection = stack.enter_context(self._opened_bisection(failing, localized)) if self._stages.bisect else None
        if bisection is not None and listed:
            bisection.prepare(Question(self._repro, subject.mismatch.signature, subject.settings))
        shrunk = self._minimize(oracle, subject) if self._stages.minimize else None
        self._find_avoiding_settings(oracle, subject, shrunk)
        self._name_pass(oracle, localized, shrunk)
        if self._stages.explain and shrunk is not None:
            with self._stage("explain", "Explain"):
                self._builder.set_conditions(explain_mismatch(self._session, oracle, shrunk.question(subject)))
        good: tuple[Build, ...] = ()
        if bisection is not None:
            shrunk, good = self._bisect(oracle, bisection, subject, localized, shrunk)
        elif self._options.good is not None:
            good = (named_build(self._options, self._session.sources, self._options.good),)
        self._hand_over(oracle, localized, shrunk, good)
        self._compare_kernels(oracle, shrunk)
        self._collect_versions(oracle)
        return Exit.PARTIAL if self._builder.has_unfinished_parts else Exit.FINISHED

    def _prepare_measuring(self) -> None:
        """Let the report take the comparisons of builds from the journal, where builds are compared by a number."""
        measuring = self._options.measuring
        if measuring is not None:
            against = reference_build(self._options, self._session.sources)
            self._builder.set_measured(MeasuredSearch(self._session.journal, measuring, self._repro, against.name))

    def _say_if_pytest_is_added(self, failing: Build) -> None:
        """Say that a test needs an environment of its own, before it is made."""
        if is_test(self._options.script) and not self._session.sources.maker(failing).has(failing):
            added = " and ".join(self._options.packages)
            self._display.result(f"pytest runs the test, so an environment is made of torch {failing} and {added}")

    def _exit_without_mismatch(self, observed: Observed) -> Exit:
        self._session.background.cancel.set()
        if observed.verdict == "none":
            return Exit.NO_MISMATCH
        for line in last_lines(observed):
            self._display.line(f"  | {without_machine_paths(clean(line))[:300]}")
        self._display.error(f"{self._options.script or '--test'}: {observed.reason}")
        if observed.verdict == "flaky":
            return Exit.FLAKY
        return Exit.MACHINE if observed.machine_at_fault else Exit.UNTESTABLE

    def _localize(self, oracle: Oracle, observed: Observed, *, known: bool) -> Localized:
        wanted = self._stages.localize and oracle.compares_eager and not known
        if observed.certain_mismatch is not None and wanted:
            with self._stage("localize", "Localize"):
                shrunk_next = self._stages.minimize
                localized = localize_mismatch(self._session, oracle, self._repro, observed, is_shrunk_next=shrunk_next)
                if localized.localization is not None:
                    self._builder.set_localization(localized.localization)
        elif self._options.command == "suite":  # the suite ran it twice on this build, and its edge is checked too
            localized = Localized(observed, Settings())
        else:
            counted = count_runs(self._session, oracle, self._repro, observed, Settings())
            localized = Localized(counted, Settings())
        self._builder.set_observed(localized.observed)
        self._save()
        return localized

    def _minimize(self, oracle: Oracle, subject: Subject, witnesses: tuple[Witness, ...] = ()) -> ShrunkScript:
        with self._stage("minimize", "Minimize" + (" again, keeping its history" if witnesses else "")):
            shrunk = shrink_trusted(self._session, oracle, subject, witnesses)
            self._builder.set_shrunk(shrunk)
            self._builder.set_measured_script(shrunk.repro if shrunk.mismatch is not None else None)
            reason = unfinished_reason(self._session, subject, shrunk)
            if reason is not None:
                self._builder.set_unfinished("minimize", reason)
        if self._is_traced(shrunk):
            begin_trace(self._session, oracle, shrunk)
        return shrunk

    def _find_avoiding_settings(self, oracle: Oracle, subject: Subject, shrunk: ShrunkScript | None) -> None:
        """Try on the shrunk script which settings avoid the mismatch; without one, that was done when localizing."""
        if shrunk is None or subject.localization is None:
            return
        with self._stage("localize", "Try other settings"):
            question = shrunk.question(subject)
            found = find_avoiding_settings(self._session, oracle, subject.localization, question)
            self._builder.set_localization(found)

    def _name_pass(self, oracle: Oracle, localized: Localized, shrunk: ShrunkScript | None) -> None:
        """Ask torch's own bisector about the smallest script that fails by itself, if there is one."""
        if localized.localization is None:
            return
        if shrunk is not None and shrunk.stands_alone:
            repro = shrunk.repro_for_people
        elif localized.observed.fails_by_itself and not self._repro.arguments:
            repro = self._repro
        else:
            return
        with self._stage("localize", "Name the pass"):
            found = find_compiler_pass(self._session, oracle, localized.localization, repro)
            if found is not None:
                self._builder.set_compiler_pass(found)

    def _opened_bisection(self, failing: Build, localized: Localized) -> Bisection:
        rate = MismatchRate(localized.observed.shown, localized.observed.runs)
        return Bisection(self._session, failing, localized.component, rate)

    def _bisect(
        self, oracle: Oracle, bisection: Bisection, subject: Subject, localized: Localized, shrunk: ShrunkScript | None
    ) -> tuple[ShrunkScript | None, tuple[Build, ...]]:
        """Search the builds, narrow the boundaries, and run the shrunk script on both sides of each.

        Return the shrunk script, which the search may have changed, and the good builds at the boundaries.
        """
        self._builder.part = "bisect"
        with bisection:
            facts = bisection.build_oracle.facts
            history = search_history(
                self._session,
                bisection,
                Question(self._repro, subject.mismatch.signature, strictness=Strictness.TOLERANT),
                shrunk,
                shrink_again=lambda witnesses: self._minimize(oracle, subject, witnesses),
                on_level=lambda level: self._builder.set_search([level], facts),
                on_remark=self._builder.add_remark,
            )
            if history.shrunk is None:
                self._builder.set_measured_script(None)
            for remark in bisection.remarks_on_wheels(history.level, history.question):
                self._builder.add_remark(remark)
            self._save()
            for found in refine(self._session, bisection, history.level, history.question, localized.component):
                self._builder.add_refinement(found, facts)
                self._save()
            with self._stage("bisect", "Confirm"):
                if history.shrunk is not None and history.shrunk.stands_alone:
                    failing, builds = oracle.environment.build, boundary_builds(history.level.result)
                    others = [build for build in builds if build.name != failing.name]
                    repro = history.shrunk.repro_for_people
                    self._builder.add_confirmations(confirm_on_builds(self._session, repro, others))
        return history.shrunk, good_builds(history.level.result)

    def _is_traced(self, shrunk: ShrunkScript | None) -> bool:
        """Return True if a trace is written. A run ends with a report that is filed, and PyTorch asks for one there."""
        if shrunk is None:
            return False
        return self._options.emit_trace or (self._options.command == "run" and shrunk.stands_alone)

    def _hand_over(
        self, oracle: Oracle, localized: Localized, shrunk: ShrunkScript | None, good: tuple[Build, ...]
    ) -> None:
        """Write the shrunk script as a test of PyTorch's suite, and its trace, where they are asked for."""
        traced = self._is_traced(shrunk)
        if shrunk is None or not (traced or self._options.emit_test):
            return
        with self._stage("hand over", "Hand over"):
            reason = None if shrunk.stands_alone else "the shrunk script does not stand alone"
            if self._options.emit_test:
                reason = reason or write_test(self._session, oracle, shrunk, localized.component, good)
            if traced:
                self._builder.add_notice(write_trace(self._session, oracle, shrunk))
            if self._options.emit_test and reason is not None:
                self._builder.set_unfinished("hand over", f"no test is written: {reason}")

    def _compare_kernels(self, oracle: Oracle, shrunk: ShrunkScript | None) -> None:
        """Put the kernels of both builds beside each other, for a minimal script that is worse; try compiler flags."""
        if self._options.measure is None or shrunk is None or shrunk.mismatch is None:
            return
        with self._stage("report", "Compare kernels"):
            against = reference_build(self._options, self._session.sources)
            kernels = compare_kernels(self._session, oracle, shrunk.repro, against.name)
            self._builder.set_kernels(kernels)
        if kernels:
            with self._stage("report", "Try flags"):
                self._builder.set_flags(find_flags(self._session, oracle, shrunk.repro))

    def _collect_versions(self, oracle: Oracle) -> None:
        """Collect what PyTorch's issue form asks for under Versions, with torch's own script."""
        with self._stage("report", "Report"):
            self._display.status("collecting the versions")
            text = self._provider.collect_env(oracle)
            if text is not None:
                self._builder.set_collect_env(text)

    @contextmanager
    def _stage(self, part: str, title: str) -> Iterator[None]:
        """Show a stage, and save the report at its end. If it fails, its part is the one that could not finish."""
        before, self._builder.part = self._builder.part, part
        with self._display.stage(title):
            yield
        self._builder.part = before
        self._save()

    def _notify(self, text: str) -> None:
        """Add a line for the reader of the report, and show it once."""
        if self._builder.add_notice(text):
            self._display.warn(text)

    def _save(self) -> None:
        self.written = self._session.workspace.save(self._builder.report())
