"""What a run of torchbisect came to: the whole of ``report.json`` as frozen dataclasses.

``docs/reference/report-schema.md`` explains the file and ``schema.json`` checks it; the three change together.
A build is named by a text (``2.8.0``, ``2.14.0.dev20260212``) wherever it occurs, and ``Report.builds`` says more
about it. A part that did not run is ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from torchbisect.core.errors import InputError
from torchbisect.probe.localize.compiler_bisector import PassFound
from torchbisect.reports.model.json_codec import ShapeError, decode, encode
from torchbisect.reports.model.search_results import (
    BisectReport,
    BuildFacts,
    BuildVerdict,
    Fix,
    Regression,
    SkippedBuild,
    SuspectCommit,
)

__all__ = [
    "SCHEMA",
    "AblationRow",
    "BisectReport",
    "BuildFacts",
    "BuildVerdict",
    "Condition",
    "Confirmation",
    "EnvironmentReport",
    "Fix",
    "LocalizationReport",
    "Logs",
    "MinimalScript",
    "MismatchReport",
    "OriginalScript",
    "PassFound",
    "ReductionStep",
    "Regression",
    "Report",
    "ReportState",
    "ReportVerdict",
    "ScriptSize",
    "SkippedBuild",
    "SuspectCommit",
    "UnfinishedPart",
]

SCHEMA = 1

ReportState = Literal["complete", "partial", "interrupted"]
ReportVerdict = Literal["mismatch", "none", "flaky", "untestable"]


@dataclass(frozen=True)
class MismatchReport:
    """In what the compiled run differs from the eager one.

    Attributes:
        kind: a value of ``torchbisect.core.mismatch.MismatchKind``.
        summary: one line in words.
        signature: what makes two mismatches the same bug; an object whose keys depend on the kind.
        fingerprint: a short stable name of the signature.
        place: where it is seen (``call 0 output[1]``), where it is in a value.
        attribute: what differs there (``requires_grad``).
        eager: the eager side in a few words.
        compiled: the compiled side in a few words.
        details: for wrong values the figures: ``count``, ``numel``, ``index``, ``largest``, ``error``, ``bound``, and
            for the picture on the page ``histogram`` and ``map``.
        runs: how often it was looked for to see whether it is flaky; 0 if it wasn't.
        shown: how many of those runs showed it.
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
    """One line of the ablation table: what was set around ``torch.compile``, and whether the mismatch is still there.

    Attributes:
        backend: the backend, or ``None`` for the script's own.
        settings: what else was set, in words that a person can type: ``dynamic=False``, ``epilogue_fusion=False``;
            empty for nothing else.
        verdict: a value of ``torchbisect.core.verdict.Answer``.
        reason: the named reason of an ``untestable`` or ``other``.
        seconds: what the question took.
    """

    backend: str | None
    settings: str
    verdict: str
    reason: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class LocalizationReport:
    """Which part of the compiler shows it.

    Attributes:
        backend: the first backend of the ladder that shows the mismatch.
        component: the part that it points to, by the word of PyTorch's label: ``dynamo``, ``inductor``,
            ``aotdispatch``; ``None`` if nothing can be said.
        settings: the cheapest settings that still show it.
        fixed_by: each setting that makes it go away, as a person types it:
            ``torch._inductor.config.epilogue_fusion = False``, ``dynamic=False``.
        table: every question asked, in order.
        compiler_bisector: what torch's own bisector says of the pass or operator; ``None`` if it was not asked, that
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
    """How big a script is: UTF-8 bytes, lines, and nodes of its syntax tree."""

    bytes: int
    lines: int
    nodes: int


@dataclass(frozen=True)
class Confirmation:
    """One run of the minimal script under plain ``python``, with no torchbisect there.

    Attributes:
        build: the build that it ran on.
        status: the exit status; negative for a signal; ``None`` if its time ran out.
        last_words: the last line or lines it wrote.
        seconds: wall time.
        eager: it ran with ``torch.compile`` made a no-op.
    """

    build: str
    status: int | None
    last_words: str = ""
    seconds: float = 0.0
    eager: bool = False


@dataclass(frozen=True)
class ReductionStep:
    """A point of the reduction's curve: after ``candidates`` questions and ``seconds``, the best had ``bytes``."""

    candidates: int
    seconds: float
    bytes: int
    nodes: int = 0


@dataclass(frozen=True)
class MinimalScript:
    """The shrunk script.

    Attributes:
        path: of the file, relative to the report's folder.
        bytes: its size in UTF-8 bytes.
        lines: its lines.
        nodes: nodes of its syntax tree.
        original: the same figures of the script that was given.
        candidates: how many scripts were asked about.
        seconds: what the reduction took.
        source: its text.
        confirmed: its runs under plain ``python``.
        trajectory: how the best candidate shrank, in order.
        stands_alone: whether it was seen to exit non-zero where it fails and zero where it does not.
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


@dataclass(frozen=True)
class Condition:
    """A statement about when the minimal script fails, and the runs it stands on.

    Attributes:
        statement: in words, true of the runs: ``x must have requires_grad=True``.
        necessary: whether the mismatch went away in every run without it.
        tried: how many scripts were run that lack it (or vary it).
        shown: how many of those still showed the mismatch.
    """

    statement: str
    necessary: bool
    tried: int
    shown: int


@dataclass(frozen=True)
class EnvironmentReport:
    """The environment in which the script failed, as read back from it.

    ``collect_env`` is what ``python -m torch.utils.collect_env`` printed there.
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
    """A part that was asked for and could not finish, and why, in one line."""

    part: str
    why: str


@dataclass(frozen=True)
class Logs:
    """The last part of what the two runs wrote to standard error, and their tracebacks."""

    eager: str = ""
    compiled: str = ""


@dataclass(frozen=True)
class OriginalScript:
    """The script as it was given: its file name without folders, its size, and its text."""

    name: str
    bytes: int
    lines: int
    nodes: int
    source: str = ""


@dataclass(frozen=True)
class Report:
    """What one run of torchbisect came to.

    Attributes:
        state: ``complete``: all that was asked for is there; ``partial``: ``unfinished`` says what is not;
            ``interrupted``: the same command goes on.
        verdict: ``mismatch``, ``none`` (compiled agrees with eager), ``flaky`` or ``untestable``.
        environment: where the script failed; ``None`` if no environment could be made.
        command: the command that repeats it, as it is typed in a shell.
        original: the script that was given.
        mismatch: ``None`` unless ``verdict`` is ``mismatch`` or ``flaky``.
        localization: ``None`` if it did not run.
        minimal: ``None`` if it did not run.
        conditions: what was measured about the minimal script's neighbours; ``None`` if it did not run.
        bisect: ``None`` if it did not run.
        builds: more about the builds named elsewhere, by name.
        arguments: what the script was given after its name.
        unfinished: parts that were asked for and could not finish.
        logs: ``None`` if neither run wrote anything.
        reason: for ``untestable`` (and ``none``) one line that says why.
        versions: torchbisect's own version and those of what it stands on.
        notices: what a reader should know of how the answers were come by, a line each.
        started: when the run began, ISO 8601 with the zone.
        seconds: wall time of the whole run.
        schema: the version of this shape.
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

    def to_json(self) -> dict[str, Any]:
        """As ``report.json`` holds it."""
        data: dict[str, Any] = encode(self)
        return {"schema": data.pop("schema"), **data}

    @classmethod
    def from_json(cls, data: Any) -> Report:
        """Read what ``to_json`` made.

        Raises:
            InputError: it isn't a report, or a newer torchbisect made it.
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
        except ShapeError as error:
            raise InputError(f"not a torchbisect report: {error}") from error
