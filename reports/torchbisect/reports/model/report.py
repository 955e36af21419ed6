"""The result of one run of torchbisect: the whole of ``report.json`` as frozen dataclasses.

``docs/reference/report-schema.md`` explains the file and ``schema.json`` checks it; the three change together.
Every reference to a build is its name (``2.8.0``, ``2.14.0.dev20260212``), and ``Report.builds`` has more about it.
A part that did not run is ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from torchbisect.core.decode import DecodeError, decode
from torchbisect.core.errors import InputError
from torchbisect.probe.localize.compiler_bisector import PassFound
from torchbisect.reports.model.json_codec import encode
from torchbisect.reports.model.measurement import MeasurementReport
from torchbisect.reports.model.search_results import BisectReport, BuildFacts

SCHEMA = 1
#: The reason of a report that was written before the first verdict.
NOT_OBSERVED = "not observed yet"

ReportState = Literal["complete", "partial", "interrupted"]
ReportVerdict = Literal["mismatch", "none", "flaky", "untestable"]


@dataclass(frozen=True)
class MismatchReport:
    """The difference between the compiled run and the eager one.

    Attributes:
        kind: a value of ``torchbisect.core.verdict.MismatchKind``.
        summary: one line in words.
        signature: the facts that two mismatches of the same bug share; an object whose keys depend on the kind.
        fingerprint: a short stable name of the signature.
        place: the value that differs (``call 0 output[1]``), if the mismatch is in a value.
        attribute: the attribute of that value that differs (``requires_grad``).
        eager: the eager side in a few words.
        compiled: the compiled side in a few words.
        details: for wrong values the figures ``count``, ``numel``, ``index``, ``largest``, ``error`` and ``bound``, and
            the data of the page's charts, ``histogram`` and ``map``.
        runs: the number of runs that checked whether it is flaky; 0 if none did.
        shown: the number of those runs that showed it.
    """

    kind: str
    summary: str
    signature: dict[str, Any] = field(default_factory=dict, hash=False)
    fingerprint: str = ""
    place: str | None = None
    attribute: str | None = None
    eager: str | None = None
    compiled: str | None = None
    details: dict[str, Any] = field(default_factory=dict, hash=False)
    runs: int = 0
    shown: int = 0


@dataclass(frozen=True)
class AblationRow:
    """One row of the ablation table: the settings around ``torch.compile``, and the verdict under them.

    Attributes:
        backend: the backend, or ``None`` for the script's own.
        settings: the other settings, as a person types them: ``dynamic=False``, ``epilogue_fusion=False``; empty if
            there are none.
        verdict: a value of ``torchbisect.core.verdict.Answer``.
        reason: the named reason of an ``untestable`` or ``other``.
        seconds: the time that the question took.
    """

    backend: str | None
    settings: str
    verdict: str
    reason: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class LocalizationReport:
    """The part of the compiler that shows the mismatch.

    Attributes:
        backend: the first backend of the ladder that shows the mismatch.
        component: the part that it points to, by the name in PyTorch's label: ``dynamo``, ``pt2-dispatcher``,
            ``inductor``; ``None`` if nothing is known.
        settings: the cheapest settings that still show it.
        fixed_by: each setting that removes the mismatch, as a person types it:
            ``torch._inductor.config.epilogue_fusion = False``, ``dynamic=False``.
        table: every question asked, in order.
        compiler_bisector: the pass or operator that torch's own bisector names; ``None`` if it was not asked, that
            torch has none, or it found nothing.
    """

    backend: str | None
    component: str | None
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    fixed_by: tuple[str, ...] = ()
    table: tuple[AblationRow, ...] = ()
    compiler_bisector: PassFound | None = None


@dataclass(frozen=True)
class ScriptSize:
    """The size of a script: UTF-8 bytes, lines, and nodes of its syntax tree."""

    bytes: int
    lines: int
    nodes: int


@dataclass(frozen=True)
class Confirmation:
    """One run of the minimal script under plain ``python``, without torchbisect.

    Attributes:
        build: the build that it ran on.
        status: the exit status; negative for a signal; ``None`` if it timed out.
        last_words: the last line or lines it wrote.
        seconds: wall time.
        eager: ``torch.compile`` did nothing in this run.
    """

    build: str
    status: int | None
    last_words: str = ""
    seconds: float = 0.0
    eager: bool = False


@dataclass(frozen=True)
class ReductionStep:
    """A point of the reduction's curve: the size of the best script after ``candidates`` questions and ``seconds``."""

    candidates: int
    seconds: float
    bytes: int
    nodes: int = 0


@dataclass(frozen=True)
class MinimalScript:
    """The shrunk script.

    Attributes:
        path: the path of its file, relative to the report's folder.
        bytes: its size in UTF-8 bytes.
        lines: its number of lines.
        nodes: the number of nodes of its syntax tree.
        original: the same figures for the original script.
        candidates: the number of scripts that were tested.
        seconds: the time that the reduction took.
        source: its text.
        confirmed: its runs under plain ``python``.
        trajectory: the sizes of the best candidates, in order.
        stands_alone: it was seen to exit non-zero on a build that fails and zero on one that does not.
        mismatch: its own mismatch, with its own places and values; ``None`` in older reports.
        log: the last part of the standard error of its compiled run.
        command: the command that measures it on the two builds; ``None`` where compiled code was compared with eager.
    """

    path: str
    bytes: int
    lines: int
    nodes: int
    original: ScriptSize
    candidates: int
    seconds: float
    source: str
    confirmed: tuple[Confirmation, ...] = ()
    trajectory: tuple[ReductionStep, ...] = ()
    stands_alone: bool = False
    mismatch: MismatchReport | None = None
    log: str = ""
    command: str | None = None


@dataclass(frozen=True)
class Condition:
    """A statement about when the minimal script fails, and the runs that support it.

    Attributes:
        statement: a sentence that holds for the runs: ``x must have requires_grad=True``.
        necessary: the mismatch disappeared in every run without it.
        tried: the number of scripts that lack or vary it and were run.
        shown: the number of those that still showed the mismatch.
    """

    statement: str
    necessary: bool
    tried: int
    shown: int


@dataclass(frozen=True)
class EnvironmentReport:
    """The environment in which the script failed, as read back from it.

    ``collect_env`` is the output of ``python -m torch.utils.collect_env`` there.
    """

    torch: str
    git_version: str | None
    python: str
    platform: str
    cuda: str | None = None
    triton: str | None = None
    collect_env: str | None = None


@dataclass(frozen=True)
class UnfinishedPart:
    """A part of the run that could not finish, and the reason in one line."""

    part: str
    why: str


@dataclass(frozen=True)
class Logs:
    """The last part of the standard error of the two runs, and their tracebacks."""

    eager: str = ""
    compiled: str = ""


@dataclass(frozen=True)
class OriginalScript:
    """The original script: its file name without folders, its size, and its text."""

    name: str
    bytes: int
    lines: int
    nodes: int
    source: str = ""


@dataclass(frozen=True)
class Report:
    """The result of one run of torchbisect.

    Attributes:
        state: ``complete``: every part finished; ``partial``: ``unfinished`` names the parts that did not;
            ``interrupted``: the same command continues the run.
        verdict: ``mismatch``, ``none`` (compiled agrees with eager), ``flaky`` or ``untestable``.
        environment: the environment in which the script failed; ``None`` if none could be made.
        command: the command that repeats the run, as it is typed in a shell.
        original: the original script.
        mismatch: ``None`` unless ``verdict`` is ``mismatch`` or ``flaky``.
        localization: ``None`` if it did not run.
        minimal: ``None`` if it did not run.
        conditions: statements about when the minimal script fails; ``None`` if the measurement did not run.
        bisect: ``None`` if it did not run.
        measurement: the builds compared by a number; ``None`` where compiled code was compared with eager.
        builds: facts about the builds in this report, by name.
        arguments: the script's command-line arguments.
        unfinished: parts of the run that could not finish.
        logs: ``None`` if neither run wrote anything.
        reason: the reason for an ``untestable`` (or a ``none``), in one line.
        versions: the versions of torchbisect and of its main dependencies.
        notices: facts about the measurements that a reader should know, a line each.
        started: the start of the run, in ISO 8601 with the time zone.
        seconds: wall time of the whole run.
        schema: the version of this file format.
    """

    state: ReportState
    verdict: ReportVerdict
    environment: EnvironmentReport | None
    command: str
    original: OriginalScript | None = None
    mismatch: MismatchReport | None = None
    localization: LocalizationReport | None = None
    minimal: MinimalScript | None = None
    conditions: tuple[Condition, ...] | None = None
    bisect: BisectReport | None = None
    builds: dict[str, BuildFacts] = field(default_factory=dict, hash=False)
    arguments: tuple[str, ...] = ()
    unfinished: tuple[UnfinishedPart, ...] = ()
    logs: Logs | None = None
    reason: str | None = None
    versions: dict[str, str] = field(default_factory=dict, hash=False)
    notices: tuple[str, ...] = ()
    started: str | None = None
    seconds: float = 0.0
    schema: int = SCHEMA
    measurement: MeasurementReport | None = None

    @property
    def shown_mismatch(self) -> MismatchReport | None:
        """The mismatch that a reader sees first: that of the minimal script where there is one."""
        return (self.minimal and self.minimal.mismatch) or self.mismatch

    @property
    def original_summary(self) -> str:
        """The summary of the original script's mismatch, where it is another than the one shown first; else empty."""
        shown, own = self.shown_mismatch, self.mismatch
        return own.summary if own is not None and shown is not None and own.summary != shown.summary else ""

    @property
    def unobserved(self) -> bool:
        """True if the run was interrupted before there was a verdict."""
        return self.state == "interrupted" and self.reason == NOT_OBSERVED

    def to_json(self) -> dict[str, Any]:
        """Return the report as the value of ``report.json``."""
        data: dict[str, Any] = encode(self)
        return {"schema": data.pop("schema"), **data}

    @classmethod
    def from_json(cls, data: Any) -> Report:
        """Read the value that ``to_json`` returned; reports of older versions are read too.

        Raises:
            InputError: the value is not a report, or a newer torchbisect wrote it.
        """
        schema = data.get("schema") if isinstance(data, dict) else None
        if not isinstance(schema, int):
            raise InputError("not a torchbisect report: it has no schema number")
        if schema > SCHEMA:
            raise InputError(
                f"this report has schema {schema}, and this torchbisect reads up to {SCHEMA}: use the newer torchbisect"
            )
        # Older versions of torchbisect wrote this key with British spelling.
        data = {"localization": data.get("localisation"), **data}
        try:
            return decode(cls, data)
        except DecodeError as error:
            raise InputError(f"not a torchbisect report: {error}") from error
