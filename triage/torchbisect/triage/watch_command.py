"""The ``watch`` command: ask every known bug on each new build, and keep the history."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchbisect.containers.store.disk import writable_directory
from torchbisect.containers.store.locks import lock_results
from torchbisect.core.build import Build
from torchbisect.core.errors import Exit, InputError
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.build_sources import LocalBuildSources
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import INTERRUPTED, Display
from torchbisect.pipeline.search_scope import failing_build
from torchbisect.triage.database import Database
from torchbisect.triage.jobs import TaskResult
from torchbisect.triage.ledger.comments import comment_changes
from torchbisect.triage.ledger.output import show, write_pages
from torchbisect.triage.ledger.page import History
from torchbisect.triage.ledger.questions import WatchTask
from torchbisect.triage.ledger.reports import bugs_to_watch, merged
from torchbisect.triage.ledger.store import Ledger
from torchbisect.triage.ledger.watch import Context, Watch, newest_builds
from torchbisect.triage.local_workers import run_on_this_machine
from torchbisect.triage.ray_workers import run_on_ray

DATABASE, JOURNAL = "triage.sqlite", "journal.jsonl"


@dataclass(frozen=True)
class WatchOptions:
    """The options of ``watch`` beside those that every question gets.

    Attributes:
        place: the folder of a triage or of reports, or the database in it.
        added: further reports to watch.
        last: the number of the newest builds that are asked.
        comment: say each change of state in a comment on its issue.
        executor: ``local`` or ``ray``.
        address: the address of the Ray cluster.
        workers: the number of workers on this machine.
        gpus: the GPUs of a Ray node that each question takes.
    """

    place: Path
    added: tuple[Path, ...] = ()
    last: int = 1
    comment: bool = False
    executor: str = "local"
    address: str | None = None
    workers: int = 1
    gpus: float = 0.0


def watch(wanted: WatchOptions, options: Options) -> int:
    """Ask what is new, and return the exit code.

    Args:
        wanted: the bugs, and the machines to ask them on.
        options: the options of every question; ``torch`` names the build, else the newest of the channel is asked.

    Raises:
        InputError: the options cannot be used.
        MachineError: this machine fails.
    """
    _check(wanted, options)
    folder, name = _place(wanted.place)
    options = replace(options, out=writable_directory(folder, option="the ledger's folder"))
    options = replace(options, channels=options.channels or ("release",))
    display = Display(options.verbosity)
    lock = lock_results(folder)
    try:
        with Database(folder / name) as database:
            ledger = Ledger(database)
            with display.working("Reading the reports"):
                _take_reports(wanted, options, database, display)
            execute = functools.partial(_execute, wanted, folder / JOURNAL)
            run = Watch(Context(ledger, options, display, execute, options.budget or Budget()))
            try:
                with display.working("Watch"):
                    run.ask(_builds(wanted, options, display))
            except KeyboardInterrupt:
                display.warn(INTERRUPTED)
                raise
            finally:
                with display.working("Writing the results"):
                    history = History.of(ledger)
                    written = write_pages(history, folder, run.touched, lambda name: ledger.answers(bug=name))
            show(history, run, written, as_json=options.as_json)
            if wanted.comment:
                reports = {row.name: folder / row.report for row in database.rows() if row.report}
                with display.working("Writing comments on GitHub"):
                    comment_changes(ledger, reports, display.warn)
    finally:
        lock.release()
    return Exit.PARTIAL if run.unfinished else Exit.FINISHED


def _check(wanted: WatchOptions, options: Options) -> None:
    if (wanted.executor == "ray") is (wanted.address is None):
        raise InputError("--executor ray and --address HOST:PORT go together: give both or neither")
    if wanted.gpus and wanted.executor != "ray":
        raise InputError("--gpus is for --executor ray: leave it out")
    if len(options.channels) > 1 or "commit" in options.channels:
        raise InputError("--channel: a ledger follows one channel; name release or nightly")


def _take_reports(wanted: WatchOptions, options: Options, database: Database, display: Display) -> None:
    """Bring the bugs of new reports into the ledger. Raises ``InputError`` if it has none then."""
    ledger, folder = Ledger(database), options.out
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    found = bugs_to_watch(folder, database.rows(), wanted.added, day, display.warn)
    ledger.put_bugs(merged(ledger.bugs(), found))
    bugs = ledger.bugs()
    if not bugs:
        raise InputError(f"{folder}: there is no report with a mismatch; make one with torchbisect triage or run")
    if options.sandbox == "venv" and any(one.bug.url for one in bugs):
        display.warn("scripts of issues come from strangers, and a venv is not a sandbox: use --sandbox docker")


def _place(place: Path) -> tuple[Path, str]:
    """Return the folder of a ledger and the name of its database."""
    if place.is_dir():
        return place, DATABASE
    if place.is_file() or place.suffix == ".sqlite":
        return place.parent, place.name
    raise InputError(f"{place}: there is no such folder; name that of a triage or of reports, or a database")


def _builds(wanted: WatchOptions, options: Options, display: Display) -> list[Build]:
    """Return the builds to ask, the oldest first: the one of ``--torch``, else the newest of the channel."""
    sources = LocalBuildSources(options, display)
    try:
        if options.torch is not None:
            return [failing_build(options, sources, display.warn)]
        nightly = "nightly" in options.channels
        return newest_builds((sources.listed_nightlies if nightly else sources.releases).builds, wanted.last)
    finally:
        sources.close()


def _execute(wanted: WatchOptions, journal: Path, tasks: Sequence[WatchTask]) -> Generator[TaskResult]:
    if wanted.executor == "ray":
        return run_on_ray(tasks, wanted.address or "", wanted.gpus)
    return run_on_this_machine(tasks, journal, wanted.workers)
