"""A job: one issue with all that shapes its answer; and what came of it. Both cross processes, so both are JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torchbisect.core.repro import fingerprint
from torchbisect.core.version import __version__
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.reports.model.report import Report

_PATHS = ("script", "out", "cache_dir")
SCRIPT = "repro.py"


@dataclass(frozen=True)
class Job:
    """One issue.

    Attributes:
        name: what it is called, as ``Row.name``.
        title: its title.
        url: where people read it.
        source: its script, or ``None`` if it has none that can be run.
        trouble: why it has none.
        path: where the script is a file: that one is run where it stands, so that its siblings import.
        torch: the version of torch that the issue says it fails on.
        packages: what the script needs beside torch.
    """

    name: str
    title: str = ""
    url: str = ""
    source: str | None = None
    trouble: str = ""
    path: str | None = None
    torch: str | None = None
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A job as an executor runs it.

    Attributes:
        job: the issue.
        options: what ``run`` would have been typed with; ``out`` is the folder of this issue's report.
    """

    job: Job
    options: Options

    @classmethod
    def of(cls, job: Job, options: Options, folder: Path, *, stated: bool) -> Task:
        """The task of a job.

        Args:
            job: the issue.
            options: what was typed for all.
            folder: the folder of its report.
            stated: whether it is run on the torch that it says it fails on, where it says one.
        """
        torch = job.torch if stated and job.torch else options.torch
        packages = tuple(dict.fromkeys((*options.packages, *job.packages)))
        script = Path(job.path) if job.path else folder / SCRIPT
        return cls(
            job, replace(options, script=script, out=folder, torch=torch, packages=packages, jobs=options.jobs or 1)
        )

    @property
    def key(self) -> str:
        """Another key is another question: the script's text and all that was typed are in it."""
        return fingerprint(__version__, self.job.source, self.job.trouble, repeat_command(self.options, SCRIPT))

    def to_json(self) -> dict[str, Any]:
        """What ``from_json`` reads."""
        written = (Path, Budget)
        options = {
            name: str(value) if isinstance(value, written) else value for name, value in vars(self.options).items()
        }
        return {"job": asdict(self.job), "options": options}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        """Read what ``to_json`` made, also after it was JSON."""
        options = _frozen(data["options"])
        paths = {name: Path(options[name]) for name in _PATHS if options[name] is not None}
        budget = None if options["budget"] is None else Budget.parsed(options["budget"])
        return cls(Job(**_frozen(data["job"])), Options(**{**options, **paths, "budget": budget}))


def _frozen(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


@dataclass(frozen=True)
class Done:
    """What came of a job.

    Attributes:
        name: the job's.
        report: what the run came to, or ``None`` if there is no report.
        trouble: why it could not be run to its end, in one line; empty if it was.
        again: whether the next run of the same command should ask it again: the machine is at fault.
    """

    name: str
    report: Report | None = None
    trouble: str = ""
    again: bool = False

    def to_json(self) -> dict[str, Any]:
        """What ``from_json`` reads."""
        return {**vars(self), "report": self.report.to_json() if self.report else None}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Done:
        """Read what ``to_json`` made, also after it was JSON. Raises ``InputError`` if its report is none."""
        return cls(**{**data, "report": Report.from_json(data["report"]) if data["report"] else None})
