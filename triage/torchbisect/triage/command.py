"""The ``triage`` command: reads issues, runs those that were not run yet, keeps what comes of each, and shows all."""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from torchbisect.containers.store.disk import writable_directory
from torchbisect.containers.store.locks import FileLock
from torchbisect.core.errors import InputError
from torchbisect.core.exit_codes import Exit
from torchbisect.core.repro import fingerprint
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.reports.files import replace_text
from torchbisect.triage import page
from torchbisect.triage.database import Database
from torchbisect.triage.duplicate_groups import groups
from torchbisect.triage.issue_sources import jobs_from, jobs_searched
from torchbisect.triage.jobs import Done, Job, Task
from torchbisect.triage.local_workers import run_here
from torchbisect.triage.ray_workers import run_on_ray
from torchbisect.triage.rows import FAILED, NOTHING_TO_RUN, OPEN, Row
from torchbisect.triage.terminal_table import table

DATABASE, PAGE, RUNS, JOURNAL = "triage.sqlite", "triage.html", "runs", "journal.jsonl"
STATED = "stated"
#: Columns of the table where no terminal says how many there are.
WIDE = 160


@dataclass(frozen=True)
class Wanted:
    """What was typed beside the options that every script gets.

    Attributes:
        source: a file of issues or a folder of scripts.
        search: a query for GitHub, in its place.
        most: no more issues than this are taken from a search.
        executor: ``local`` or ``ray``.
        address: the Ray cluster's.
        workers: so many at once on this machine.
        gpus: that each issue takes of a Ray cluster.
    """

    source: Path | None = None
    search: str | None = None
    most: int = 200
    executor: str = "local"
    address: str | None = None
    workers: int = 1
    gpus: float = 0.0


def triage(wanted: Wanted, options: Options) -> int:
    """Run the issues that were not run yet; returns the exit code.

    Args:
        wanted: where issues come from and where they run.
        options: what every script is run with; ``out`` is the folder of all.

    Raises:
        InputError: what was typed can't be used.
        MachineError: this machine can't do its part.
    """
    _check(wanted)
    display = Display(options.verbosity)
    out = writable_directory(options.out, option="--out")
    lock = FileLock(out / ".lock")
    if not lock.try_acquire():
        raise InputError(f"--out {out}: another triage is at work there; wait for it, or name another folder")
    try:
        with Database(out / DATABASE) as database:
            jobs = _jobs(wanted, display)
            _warn(jobs, options, display)
            try:
                _run(wanted, _tasks(jobs, options, out), database, display)
            finally:
                rows = database.rows()
                replace_text(out / PAGE, page.render(rows))
            _show(rows, options, [out / PAGE, out / DATABASE])
    finally:
        lock.release()
    names = {job.name for job in jobs}
    return Exit.PARTIAL if any(row.state in OPEN for row in rows if row.name in names) else Exit.FINISHED


def _check(wanted: Wanted) -> None:
    if (wanted.source is None) is (wanted.search is None):
        raise InputError("name the issues: either a file of them or a folder of scripts, or --search QUERY")
    if (wanted.executor == "ray") is (wanted.address is None):
        raise InputError("--executor ray and --address HOST:PORT go together: give both or neither")
    if wanted.gpus and wanted.executor != "ray":
        raise InputError("--gpus is for --executor ray: leave it out")


def _jobs(wanted: Wanted, display: Display) -> list[Job]:
    if wanted.source is not None:
        return jobs_from(wanted.source)
    return jobs_searched(wanted.search or "", wanted.most, display.warn)


def _warn(jobs: Sequence[Job], options: Options, display: Display) -> None:
    if options.sandbox == "venv" and any(job.source is not None and job.path is None for job in jobs):
        display.warn("these scripts are strangers', and a venv is no sandbox: --sandbox docker keeps attackers in")


def _tasks(jobs: Sequence[Job], options: Options, out: Path) -> list[Task]:
    stated = options.torch == STATED
    shared = replace(options, torch=None) if stated else options
    return [Task.of(job, shared, out / RUNS / _folder(job.name), stated=stated) for job in jobs]


def _folder(name: str) -> str:
    """A folder's name for an issue: readable, and another one for every other issue."""
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', name).strip('-.')[-60:]}-{fingerprint(name)[:6]}"


def _run(wanted: Wanted, tasks: Sequence[Task], database: Database, display: Display) -> None:
    known = {row.name: row for row in database.rows()}
    new = [task for task in tasks if not _answered(known.get(task.job.name), task)]
    database.put(*(_begun(task) for task in new))
    runnable = {task.job.name: task for task in new if task.job.source is not None}
    display.line(f"{len(tasks)} issues, {len(new)} of them new, {len(runnable)} to run")
    if not runnable:
        return
    with closing(_ended(wanted, list(runnable.values()))) as every:
        for number, done in enumerate(every, 1):
            row = _ended_row(_begun(runnable[done.name]), done)
            database.put(row)
            display.line(f"[{number}/{len(runnable)}] {row.name}: {row.state}" + _because(row))


def _answered(row: Row | None, task: Task) -> bool:
    return row is not None and row.key == task.key and row.state not in OPEN


def _because(row: Row) -> str:
    words = row.summary or row.reason
    return f" ({words})" if words else ""


def _begun(task: Task) -> Row:
    """A job's row before it has run; that of one which can't be run is finished."""
    job = task.job
    row = Row(job.name, task.key, job.title, job.url)
    return row if job.source is not None else _dated(replace(row, state=NOTHING_TO_RUN, reason=job.trouble))


def _ended(wanted: Wanted, tasks: Sequence[Task]) -> Generator[Done]:
    out = tasks[0].options.out.parent.parent
    if wanted.executor == "ray":
        return run_on_ray(tasks, wanted.address or "", wanted.gpus)
    return run_here(tasks, out / JOURNAL, wanted.workers)


def _ended_row(row: Row, done: Done) -> Row:
    if done.report is not None:
        row = row.with_report(done.report, f"{RUNS}/{_folder(row.name)}")
    if done.trouble:
        row = replace(row, state=FAILED if done.again else "untestable", reason=done.trouble)
    return _dated(row)


def _dated(row: Row) -> Row:
    return replace(row, finished=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))


def _show(rows: Sequence[Row], options: Options, files: Sequence[Path]) -> None:
    if options.as_json:
        same = [{"names": list(group.names), "reasons": list(group.reasons)} for group in groups(rows)]
        click.echo(json.dumps({"issues": [row.to_json() for row in rows], "groups": same}, indent=2))
    else:
        Console(highlight=False, width=None if sys.stdout.isatty() else WIDE).print(table(rows, files))
