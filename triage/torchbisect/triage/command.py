"""The ``triage`` command: read issues, run the new ones, store the results, and show them all."""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from torchbisect.containers.store.disk import writable_directory
from torchbisect.containers.store.locks import lock_results
from torchbisect.core.errors import Exit, InputError
from torchbisect.core.repro import fingerprint
from torchbisect.core.scrub import scrub
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import INTERRUPTED, Display
from torchbisect.reports.files import replace_text
from torchbisect.triage.database import Database
from torchbisect.triage.duplicate_groups import duplicate_groups
from torchbisect.triage.issue_row import FAILED, KNOWN, NOTHING_TO_RUN, OPEN, IssueRow
from torchbisect.triage.issue_sources import jobs_from, jobs_searched
from torchbisect.triage.issue_table import html_page, terminal_table
from torchbisect.triage.jobs import IssueJob, IssueTask, TaskResult
from torchbisect.triage.ledger.known import KnownBugs
from torchbisect.triage.ledger.store import Ledger
from torchbisect.triage.local_workers import run_on_this_machine
from torchbisect.triage.ray_workers import run_on_ray
from torchbisect.triage.related_issues import related_issues
from torchbisect.triage.running_issues import RunningIssues

DATABASE, PAGE, RUNS, JOURNAL = "triage.sqlite", "triage.html", "runs", "journal.jsonl"
#: The value of ``--torch`` that runs each script on the version that its issue states.
STATED = "stated"
#: Width of the table where standard output is not a terminal.
WIDTH = 160


@dataclass(frozen=True)
class TriageOptions:
    """The options of ``triage`` beside those that every script gets.

    Attributes:
        source: a file of issues or a folder of scripts.
        search: a GitHub query, instead of ``source``.
        most: the maximum number of issues from a search.
        executor: ``local`` or ``ray``.
        address: the address of the Ray cluster.
        workers: the number of workers on this machine.
        gpus: the GPUs of a Ray node that each issue takes.
    """

    source: Path | None = None
    search: str | None = None
    most: int = 200
    executor: str = "local"
    address: str | None = None
    workers: int = 1
    gpus: float = 0.0


def triage(wanted: TriageOptions, options: Options) -> int:
    """Run the issues that have no result yet, and return the exit code.

    Args:
        wanted: the source of the issues, and the machines to run them on.
        options: the options for every script; ``out`` is the folder of the whole triage.

    Raises:
        InputError: the options cannot be used.
        MachineError: this machine fails.
    """
    _check(wanted)
    display = Display(options.verbosity)
    out = writable_directory(options.out, option="--out")
    lock = lock_results(out)
    try:
        with Database(out / DATABASE) as database:
            with display.working("Reading the issues"):
                searched = (wanted.search or "", wanted.most, display.warn)
                jobs = jobs_from(wanted.source) if wanted.source is not None else jobs_searched(*searched)
            _warn_without_sandbox(jobs, options, display)
            try:
                _run(wanted, _tasks(jobs, options, out), database, display)
            except KeyboardInterrupt:
                display.warn(INTERRUPTED)
                raise
            finally:
                with display.working("Writing the results"):
                    rows = database.rows()
                    replace_text(out / PAGE, html_page(rows))
            _show(rows, options, [out / PAGE, out / DATABASE])
    finally:
        lock.release()
    names = {job.name for job in jobs}
    return Exit.PARTIAL if any(row.state in OPEN for row in rows if row.name in names) else Exit.FINISHED


def _check(wanted: TriageOptions) -> None:
    if (wanted.source is None) is (wanted.search is None):
        raise InputError("name the issues: either a file of them or a folder of scripts, or --search QUERY")
    if (wanted.executor == "ray") is (wanted.address is None):
        raise InputError("--executor ray and --address HOST:PORT go together: give both or neither")
    if wanted.gpus and wanted.executor != "ray":
        raise InputError("--gpus is for --executor ray: leave it out")


def _warn_without_sandbox(jobs: Sequence[IssueJob], options: Options, display: Display) -> None:
    if options.sandbox == "venv" and any(job.source is not None and job.path is None for job in jobs):
        display.warn("these scripts come from strangers, and a venv is not a sandbox: use --sandbox docker")


def _tasks(jobs: Sequence[IssueJob], options: Options, out: Path) -> list[IssueTask]:
    stated = options.torch == STATED
    shared = replace(options, torch=None) if stated else options
    return [IssueTask.of(job, shared, out / RUNS / _folder_name(job.name), stated=stated) for job in jobs]


def _folder_name(name: str) -> str:
    """Return a readable folder name that is different for every issue."""
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', name).strip('-.')[-60:]}-{fingerprint(name)[:6]}"


def _run(wanted: TriageOptions, tasks: Sequence[IssueTask], database: Database, display: Display) -> None:
    known = {row.name: row for row in database.rows()}
    ledger = KnownBugs(Ledger(database).bugs())
    new = [
        replace(task, known=ledger.decisive_signatures(task.name))
        for task in tasks
        if not _has_result(known.get(task.name), task)
    ]
    before = {task.name: _row_before_run(task, ledger) for task in new}
    database.put(*before.values())
    runnable = {task.name: task for task in new if before[task.name].state in OPEN}
    same = [row for row in before.values() if row.state == KNOWN]
    more = f", {len(same)} known to the ledger" if same else ""
    display.line(f"{len(tasks)} issues, {len(new)} of them new, {len(runnable)} to run{more}")
    for row in same:
        display.line(f"{row.name}: {row.known}")
    if not runnable:
        return
    running = RunningIssues(len(runnable))
    with display.working("Triage"), closing(_execute(wanted, list(runnable.values()), running.start)) as results:
        display.status(running.text, 0, len(runnable))
        for number, result in enumerate(results, 1):
            running.end(result.name)
            display.count(number, len(runnable))
            row = _row_after_run(runnable[result.name], result)
            row = replace(row, known=ledger.with_mismatch(row) or "")
            database.put(row)
            words = row.summary or row.reason
            if row.stated:
                words += f"; the issue states torch {row.stated}, and {row.torch} was run"
            words += f"; {row.known}" if row.known else ""
            display.line(f"[{number}/{len(runnable)}] {row.name}: {row.state}{f' ({words})' if words else ''}")


def _has_result(row: IssueRow | None, task: IssueTask) -> bool:
    # What the ledger says of a known issue may have changed, and costs nothing to say again.
    return row is not None and row.key == task.key and row.state not in (*OPEN, KNOWN)


def _row_before_run(task: IssueTask, ledger: KnownBugs) -> IssueRow:
    """Return an issue's row before its run; one without a script, or with a known one, has its final row at once."""
    job = task.job
    row = IssueRow(job.name, task.key, job.title, job.url)
    if job.source is None:
        return _with_time(replace(row, state=NOTHING_TO_RUN, reason=scrub(job.problem)))
    known = ledger.with_script(job.name, job.source)
    return row if known is None else _with_time(replace(row, state=KNOWN, reason=known, known=known))


def _execute(
    wanted: TriageOptions, tasks: Sequence[IssueTask], on_start: Callable[[IssueTask], None]
) -> Generator[TaskResult]:
    out = tasks[0].options.out.parent.parent
    if wanted.executor == "ray":
        return run_on_ray(tasks, wanted.address or "", wanted.gpus)
    return run_on_this_machine(tasks, out / JOURNAL, wanted.workers, on_start)


def _row_after_run(task: IssueTask, result: TaskResult) -> IssueRow:
    row = IssueRow(task.name, task.key, task.job.title, task.job.url)
    if result.report is not None:
        row = row.with_report(result.report, f"{RUNS}/{_folder_name(row.name)}")
    asked = task.options.torch if task.options.nearest else None
    if asked and row.torch and asked not in (row.torch, row.torch.partition("+")[0]):
        row = replace(row, stated=asked)
    if result.problem:
        row = replace(row, state=FAILED if result.retry else "untestable", reason=result.problem)
    return _with_time(row)


def _with_time(row: IssueRow) -> IssueRow:
    return replace(row, finished=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))


def _show(rows: Sequence[IssueRow], options: Options, files: Sequence[Path]) -> None:
    if options.as_json:
        groups = [{"names": list(group.names), "reasons": list(group.reasons)} for group in duplicate_groups(rows)]
        related = [{"names": list(pair.names), "evidence": list(pair.evidence)} for pair in related_issues(rows)]
        issues = [row.to_json() for row in rows]
        click.echo(json.dumps({"issues": issues, "groups": groups, "related": related}, indent=2))
    else:
        Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH).print(terminal_table(rows, files))
