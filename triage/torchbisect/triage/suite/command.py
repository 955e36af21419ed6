"""The ``suite`` command: run a test suite on two builds, and find where each kind of new failure came in."""

from __future__ import annotations

import functools
import io
import json
import re
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import click

from torchbisect.bisect.sources.selection import check_ends, sort_key
from torchbisect.containers.store.disk import disk_errors, writable_directory
from torchbisect.containers.store.locks import lock_results
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.store.run_folder import unique_folder
from torchbisect.core.build import Build
from torchbisect.core.errors import Exit, InputError, MachineError
from torchbisect.core.printable import one_line
from torchbisect.core.repro import fingerprint
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import INTERRUPTED, Display
from torchbisect.pipeline.run import Pipeline
from torchbisect.pipeline.script import suite_files
from torchbisect.pipeline.search_scope import named_build
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.journal import Journal
from torchbisect.reports.model.report import Report
from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.suite.group import TestGroup, first_groups, merged
from torchbisect.triage.suite.outcomes import ApartTest, Difference, compare_outcomes, disagreeing, without_flaky
from torchbisect.triage.suite.reached_source import reached_source
from torchbisect.triage.suite.results import SuiteResult, terminal_lines, write_results
from torchbisect.triage.suite.suite_runs import SuiteRuns, pytest_arguments

JOURNAL, RUNS = "journal.jsonl", "runs"


def suite(command: str, options: Options) -> int:
    """Run a suite on two builds, group what fails on the bad one only, and return the exit code.

    Args:
        command: the command line of pytest.
        options: the options for every test; ``out`` is the folder of all results.

    Raises:
        InputError: the command or an option can't be used.
        MachineError: this machine fails.
    """
    words = pytest_arguments(command)
    if options.good is None or options.bad is None:
        raise InputError("name both builds: --good, where the suite passes, and --bad, where tests fail")
    display = Display(options.verbosity)
    out = writable_directory(options.out, option="--out")
    with ExitStack() as stack:
        stack.callback(lock_results(out).release)
        folder = unique_folder("files")
        stack.callback(remove_tree, folder)
        shared = SharedResources(Journal(out / JOURNAL))
        stack.callback(shared.close)
        files, note = suite_files(options, words, folder)
        if note:
            display.warn(note)
        provider = LocalProvider(options, display, shared)
        good, bad = (named_build(options, provider.sources, text) for text in (options.good, options.bad))
        check_ends(good, bad)
        runs = SuiteRuns(command, words, files, options, provider, shared.journal, display)
        comparison = _Comparison(runs, good, bad, out, shared)
        try:
            comparison.execute()
        except KeyboardInterrupt:
            display.warn(INTERRUPTED)
            return Exit.INTERRUPTED
        result, written = comparison.result, comparison.written
    if options.as_json:
        click.echo(json.dumps(result.to_json(), indent=2))
    else:
        for line in terminal_lines(result, written):
            click.echo(line)
    if not result.groups:
        return Exit.NO_MISMATCH
    open_rows = [group for group in result.groups if group.row.state != "mismatch" or group.row.unfinished]
    return Exit.PARTIAL if open_rows else Exit.FINISHED


@dataclass
class _Comparison:
    """The steps of the command; the results so far are on disk after each."""

    runs: SuiteRuns
    good: Build
    bad: Build
    out: Path
    shared: SharedResources
    written: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        self.result = SuiteResult(self.runs.command, self.good.name, self.bad.name)

    def execute(self) -> None:
        """Go through the steps."""
        display = self.runs.display
        with display.working("Suite"):
            found = self._differences()
            rows, found = self._observed(found)
            self._save(apart=found.apart)
            pending = list(first_groups(rows, {row.name: self._reached(row.name) for row in rows}))
            by_name = {row.name: row for row in rows}
            done: list[TestGroup] = []
            while pending:
                group = pending.pop(0)
                with display.stage(f"Group {len(done) + 1} of {len(done) + 1 + len(pending)}: {group.first}"):
                    group = self._searched(group)
                    others = self._outside(group)
                inside = tuple(name for name in group.tests if name not in others)
                done.append(replace(group, tests=inside))
                if others:
                    display.result(f"{len(others)} of its tests do not change at this edge: they are a group apart")
                    pending.append(TestGroup(others, by_name[others[0]]))
                self._save(groups=merged(done))
            self._save(groups=merged(done))

    def _save(self, **changes: object) -> None:
        self.result = replace(self.result, **changes)  # type: ignore[arg-type]
        with disk_errors(self.out, option="--out"):
            self.written = write_results(self.result, self.out)

    def _differences(self) -> Difference:
        """Run the suite on both builds, and what is new a second time."""
        display, first = self.runs.display, {}
        for build, role in ((self.good, "good"), (self.bad, "bad")):
            with display.stage(f"Run the suite on torch {build} ({role})"):
                first[role] = run = self.runs.run(build, role)
                failing = sum(run.failing(name) for name in run.tests)
                display.result(f"{len(run.tests)} tests, {failing} fail")
                for name, why in run.errors.items():
                    self._note(f"torch {build} can't collect {name}: {one_line(why, 200)}")
        found = compare_outcomes(first["good"], first["bad"])
        if found.new:
            with display.stage("Run the new failures again, alone"):
                bad = self.runs.run(self.bad, "bad again", found.new)
                good = self.runs.run(self.good, "good again", found.new)
                found = without_flaky(found, good, bad)
                display.result(f"{len(found.new)} tests fail on torch {self.bad} and not on {self.good}")
        self._save(apart=found.apart, agreed=found.agreed, outcomes=first["bad"].tests)
        return found

    def _note(self, text: str) -> None:
        self.runs.display.warn(text)
        self.result = replace(self.result, notices=(*self.result.notices, text))

    def _observed(self, found: Difference) -> tuple[list[IssueRow], Difference]:
        """Compare each new failure with eager; one that eager shows too is no failure of torch.compile."""
        rows: list[IssueRow] = []
        apart, display = list(found.apart), self.runs.display
        if not found.new:
            return rows, found
        with display.stage(f"Compare each with eager, on torch {self.bad}"):
            for number, name in enumerate(found.new, 1):
                display.status(f"comparing {name}", number - 1, len(found.new))
                report = self._pipeline(name, "suite", Display(-1, io.StringIO()))
                row = self._row(name, report)
                words = one_line(row.summary or row.reason, 200)
                display.result(f"[{number}/{len(found.new)}] {name}: {words}")
                if row.state == "mismatch":
                    rows.append(row)
                else:
                    kind = "flaky" if row.state == "flaky" else "not-compiled"
                    reason = row.reason or "compiled code agrees with eager in it"
                    apart.append(ApartTest(name, kind, reason))
        return rows, replace(found, apart=tuple(apart))

    def _searched(self, group: TestGroup) -> TestGroup:
        """Shrink and bisect the first test of a group."""
        report = self._pipeline(group.first, "run", self.runs.display)
        minimal = report.minimal.source if report.minimal is not None else ""
        return replace(group, row=self._row(group.first, report), minimal=minimal)

    def _outside(self, group: TestGroup) -> tuple[str, ...]:
        """Run the other tests of a group on both sides of its edge, and return those that the edge does not fit."""
        edge, others = group.edge_builds, group.tests[1:]
        if edge is None or not others:
            return ()
        before, behind = (
            self.runs.run(named_build(self.runs.options, self.runs.provider.sources, name), "edge", others)
            for name in edge
        )
        return disagreeing(others, before, behind)

    def _pipeline(self, name: str, command: str, display: Display) -> Report:
        """Take one test through a command, in a folder of its own."""
        options = self.runs.options
        newer = sort_key(self.good) > sort_key(self.bad)  # type: ignore[operator]  # of one channel
        options = replace(
            options,
            command=command,
            script=Path(name),
            torch=options.bad,
            bad=None,
            find="fix" if newer else "regression",
            out=self._folder(name),
            as_json=False,
        )
        pipeline = Pipeline(options, display, functools.partial(LocalProvider, shared=self.shared))
        code = pipeline.execute()
        if code == Exit.INTERRUPTED:
            raise KeyboardInterrupt
        if code == Exit.MACHINE:
            raise MachineError(f"{name}: {pipeline.report.reason or 'the machine failed'}")
        return pipeline.report

    def _folder(self, name: str) -> Path:
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-60:]
        return self.out / RUNS / f"{readable}-{fingerprint(name)[:6]}"

    def _row(self, name: str, report: Report) -> IssueRow:
        return IssueRow(name).with_report(report, str(self._folder(name).relative_to(self.out)))

    def _reached(self, name: str) -> str:
        """Return the source that a test reaches in its file; empty if that can't be read."""
        file, _, node = name.partition("::")
        try:
            return reached_source(Path(file).read_text(encoding="utf-8"), node)
        except (OSError, ValueError):
            return ""
