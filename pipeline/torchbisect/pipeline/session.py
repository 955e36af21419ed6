"""The session of a run: its options, display, result folder, journal, and the provider that answers questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from torchbisect.containers.environment import Environment
from torchbisect.containers.store.disk import disk_errors, writable_directory
from torchbisect.containers.store.locks import lock_results
from torchbisect.core.build import Build
from torchbisect.core.repro import fingerprint
from torchbisect.pipeline.background import Background
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.provider import BuildSources, Notify, Provider
from torchbisect.probe.journal import Journal
from torchbisect.probe.oracle import Oracle
from torchbisect.reports import files
from torchbisect.reports.model.report import Report

JOURNAL = "journal.jsonl"
TRAJECTORY = "trajectory"


class Workspace:
    """The folder ``--out``, locked for one run until ``close``.

    Args:
        folder: the folder.
        on_wait: told of the wait for another process that works there; by default it is not waited for.

    Raises:
        InputError, DiskFull: it can't be made or written to.
        InputError: another process works there, and it is not waited for.
    """

    def __init__(self, folder: Path, *, on_wait: Notify | None = None) -> None:
        self.folder = writable_directory(folder, option="--out")
        self._lock = lock_results(self.folder, on_wait=on_wait)
        files.remove_unfinished(self.folder)
        files.remove_unfinished(self.folder / TRAJECTORY)

    @property
    def journal(self) -> Path:
        """The file of all answers, from which the same command continues where it stopped."""
        return self.folder / JOURNAL

    def save_minimal(self, source: str) -> None:
        """Save the smallest script so far; a reader sees either the old text or the new one."""
        files.replace_text(self.folder / files.MINIMAL, source)

    def save_code(self, build: str, code: str) -> str:
        """Save the code that inductor generated on a build; return the name of the file."""
        name = files.code_file(build)
        files.replace_text(self.folder / name, code)
        return name

    def save_step(self, number: int, source: str) -> None:
        """Save one of the scripts on the way to the smallest, by its number."""
        folder = self.folder / TRAJECTORY
        with disk_errors(folder, option="--out"):
            folder.mkdir(exist_ok=True)
        files.replace_text(folder / f"{number:04}.py", source)

    def save(self, report: Report) -> tuple[Path, ...]:
        """Write the report in all its formats, and return the files."""
        return files.write(report, self.folder)

    def close(self) -> None:
        """Let another run work in the folder."""
        self._lock.release()


@dataclass(frozen=True)
class Session:
    """The things that every stage of one run uses.

    Attributes:
        journal: keeps every answer, so that the same command continues where it stopped.
        notify: receives a line for the reader of the report.
        background: begins what later stages will probably need. Nothing is begun beside a run that it would disturb.
    """

    options: Options
    display: Display
    provider: Provider
    workspace: Workspace
    journal: Journal
    notify: Notify
    background: Background

    @classmethod
    def open(cls, options: Options, display: Display, provider: Provider, notify: Notify) -> Session:
        """Open the folder of the results and the journal. Raises ``InputError`` or ``DiskFull`` if that fails."""
        # Consecutive runs of one worker share a journal. Only a dying worker can still be in a folder of theirs.
        workspace = Workspace(options.out, on_wait=display.warn if provider.journal is not None else None)
        journal = provider.journal or Journal(workspace.journal)
        journal.tell(notify)
        background = Background(options.candidates if options.candidates > 1 else 0)
        return cls(options, display, provider, workspace, journal, notify, background)

    @property
    def sources(self) -> BuildSources:
        """The lists of builds, and the makers of environments."""
        return self.provider.sources

    @property
    def question_scope(self) -> str:
        """The bounds and the test that are part of every question; part of the keys of answers."""
        options = self.options
        folder = Path.cwd() if options.test is not None else None
        measured = (options.measure, options.worse_by, options.against or options.good) if options.measure else ()
        return fingerprint(asdict(options.bounds), options.test, options.timeout, str(folder), *measured)

    @contextmanager
    def oracle(self, build: Build) -> Iterator[Oracle]:
        """Lend an oracle for a build. Raises ``InstallFailed`` if the build can't be installed here."""
        with self.provider.environment(build) as environment, self.oracle_in(environment) as oracle:
            yield oracle

    def oracle_in(self, environment: Environment) -> Oracle:
        """Return an oracle for an environment that is there; the caller closes it."""
        return self.provider.oracle(environment, self.journal, self.notify)

    def failing_oracle(self, build: Build) -> AbstractContextManager[Oracle]:
        """Open an oracle for the build where the script fails. Raises ``InstallFailed`` if it can't be installed."""
        return self.provider.failing_oracle(build, self.journal, self.notify)
