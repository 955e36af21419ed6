"""Jobs of a triage and their results. Both cross process borders, so both convert to JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torchbisect.core.decode import decode
from torchbisect.core.repro import fingerprint
from torchbisect.core.version import __version__
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.reports.model.report import Report

_PATHS = ("script", "out", "cache_dir", "workdir")
SCRIPT = "repro.py"


@dataclass(frozen=True)
class IssueJob:
    """One issue, with its script if it has one.

    Attributes:
        name: the name of the issue, as in ``IssueRow.name``.
        title: its title.
        url: the address for people.
        source: its script, or ``None`` if it has none that can be run.
        problem: the reason why it has none.
        path: the path of the script, if it is a file. It runs from there, so that it can import its neighbors.
        others: further scripts, of other code blocks, which are tried if this one shows no mismatch.
        torch: the version of torch on which the script fails, according to the issue.
        packages: the packages that the script needs beside torch.
    """

    name: str
    title: str = ""
    url: str = ""
    source: str | None = None
    problem: str = ""
    path: str | None = None
    others: tuple[str, ...] = ()
    torch: str | None = None
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class IssueTask:
    """A job with the options to run it.

    Attributes:
        job: the issue.
        options: the options of ``run`` for its script; ``out`` is the folder of its report.
        known: fingerprints of signatures; a run that shows one of them ends with it.
    """

    job: IssueJob
    options: Options
    known: tuple[str, ...] = ()

    @classmethod
    def of(cls, job: IssueJob, options: Options, folder: Path, *, stated: bool) -> IssueTask:
        """Return the task of a job.

        Args:
            job: the issue.
            options: the options for all issues.
            folder: the folder of its report.
            stated: run the script on the version of torch that the issue states, if it states one.
        """
        if stated and job.torch:
            options = replace(options, torch=job.torch, nearest=True)
        packages = tuple(dict.fromkeys((*options.packages, *job.packages)))
        script = Path(job.path) if job.path else folder / SCRIPT
        # A stranger's script has no business in the folder where triage was started.
        options = replace(options, script=script, out=folder, workdir=script.parent)
        return cls(job, replace(options, packages=packages, jobs=options.jobs or 1))

    @property
    def name(self) -> str:
        """The name of the issue."""
        return self.job.name

    @property
    def key(self) -> str:
        """Fingerprint of the script and all options: a task with another key needs a new run."""
        job, options = self.job, replace(self.options, cache_dir=None, cache_limit=None)
        return fingerprint(__version__, job.source, *job.others, job.problem, repeat_command(options, SCRIPT))

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON values, for ``from_json``."""
        return {"job": asdict(self.job), "options": options_to_json(self.options), "known": self.known}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> IssueTask:
        """Read the value that ``to_json`` returned, also after a round trip through JSON text."""
        job = IssueJob(**_with_tuples(data["job"]))
        return cls(job, options_from_json(data["options"]), tuple(data["known"]))

    def in_folder(self, folder: Path, python: str) -> IssueTask:
        """Return the task for another machine: its folder and, unless the user named one, its Python."""
        script = self.options.script
        assert script is not None
        from_text = self.job.path is None or not script.exists()
        options = replace(
            self.options,
            python=self.options.python or python,
            out=folder,
            script=folder / script.name if from_text else script,
        )
        return replace(self, job=replace(self.job, path=None) if from_text else self.job, options=options)


def options_to_json(options: Options) -> dict[str, Any]:
    """Return options as JSON values, for ``options_from_json``."""
    written = (Path, Budget)
    return {name: str(value) if isinstance(value, written) else value for name, value in vars(options).items()}


def options_from_json(data: dict[str, Any]) -> Options:
    """Read the value that ``options_to_json`` returned, also after a round trip through JSON text."""
    options = _with_tuples(data)
    paths = {name: Path(options[name]) for name in _PATHS if options[name] is not None}
    budget = None if options["budget"] is None else Budget.parsed(options["budget"])
    return Options(**{**options, **paths, "budget": budget})


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Turn the lists among the values into tuples, which JSON does not have."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


class Task(Protocol):
    """Work for a worker: an issue of a triage, or a question of the watch."""

    @property
    def name(self) -> str:
        """The name of its result."""

    @property
    def options(self) -> Options:
        """The options of a run; ``out`` is a folder of the task's own."""

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON values, for ``tasks.task_from_json``."""

    def in_folder(self, folder: Path, python: str) -> Task:
        """Return the task for another machine: its folder and, unless the user named one, its Python."""


@dataclass(frozen=True)
class TaskResult:
    """The result of a task.

    Attributes:
        name: the name of the job.
        report: the report of the run, or ``None`` if there is none.
        problem: the reason why the run did not finish, in one line; empty if it did.
        retry: the machine is at fault, so the next run of the same command should try again.
        answer: the answer to a question of the watch, as JSON values.
    """

    name: str
    report: Report | None = None
    problem: str = ""
    retry: bool = False
    answer: Any = None

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values, for ``from_json``."""
        return {**vars(self), "report": self.report.to_json() if self.report else None}

    @classmethod
    def from_json(cls, data: Any) -> TaskResult:
        """Read the value that ``to_json`` returned. Raises ``DecodeError`` or ``InputError`` for another value."""
        result = decode(_ResultJson, data, "result")
        report = Report.from_json(result.report) if result.report is not None else None
        return cls(result.name, report, result.problem, result.retry, result.answer)


@dataclass(frozen=True)
class _ResultJson:
    """A task's result in JSON."""

    name: str
    report: Any
    problem: str
    retry: bool
    answer: Any = None
