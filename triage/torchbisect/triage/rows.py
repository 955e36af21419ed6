"""One issue of many: what came of it, as the database keeps it and the table and the page show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from torchbisect.reports.model.report import Report
from torchbisect.reports.render.labels import suggest
from torchbisect.triage.script_operators import operators

WAITING = "waiting"
NOTHING_TO_RUN = "nothing-to-run"
FAILED = "failed"
STATES = ("mismatch", "flaky", "untestable", FAILED, "none", NOTHING_TO_RUN, WAITING)
"""Every state of an issue, in the order in which people want to see them.

``mismatch``, ``flaky``, ``untestable`` and ``none`` are a report's verdicts. ``nothing-to-run``: there is no script in
it. ``failed``: the machine or torchbisect failed, so the same command asks it again. ``waiting``: not asked yet.
"""

#: An issue in one of these is asked by the next run of the same command.
OPEN = frozenset({WAITING, FAILED})


@dataclass(frozen=True)
class Row:
    """What is known of one issue.

    Attributes:
        name: what it is called: ``OWNER/REPO#N``, or a script's path.
        key: a fingerprint of the script and of all that shapes its answer: another one is another question.
        title: the issue's title.
        url: where people read it.
        state: one of ``STATES``.
        reason: for every state but ``mismatch`` and ``none`` one line that says why.
        torch: the torch that it was run on.
        kind: the kind of mismatch.
        summary: the mismatch in one line.
        signature: the fingerprint of the mismatch's signature.
        component: the part of the compiler that it points to.
        backend: the first backend that shows it.
        operators: what the smallest script known calls, but for what only makes tensors; in alphabetical order.
        last_good: the newest good build before it broke.
        first_bad: the first bad build.
        bad_commit: the commit that broke it, where that was found.
        last_bad: the newest bad build before it was mended.
        first_fixed: the first build in which it is mended.
        fix_commit: the commit that mended it, where that was found.
        labels: suggested labels.
        unfinished: parts of the run that could not finish, in one line.
        report: the folder of its report, relative to the database's.
        seconds: what it took.
        finished: when that was known, ISO 8601.
    """

    name: str
    key: str = ""
    title: str = ""
    url: str = ""
    state: str = WAITING
    reason: str = ""
    torch: str = ""
    kind: str = ""
    summary: str = ""
    signature: str = ""
    component: str = ""
    backend: str = ""
    operators: str = ""
    last_good: str = ""
    first_bad: str = ""
    bad_commit: str = ""
    last_bad: str = ""
    first_fixed: str = ""
    fix_commit: str = ""
    labels: tuple[str, ...] = ()
    unfinished: str = ""
    report: str = ""
    seconds: float = 0.0
    finished: str = ""

    def with_report(self, report: Report, folder: str) -> Row:
        """The row once its report is there.

        Args:
            report: what the run came to.
            folder: where it lies, relative to the database's folder.
        """
        known = {**_mismatch(report), **_range(report)}
        return replace(
            self,
            state=report.verdict,
            reason=report.reason or "" if report.verdict not in ("mismatch", "none") else "",
            torch=report.environment.torch if report.environment else "",
            labels=suggest(report),
            unfinished="; ".join(f"{part.part}: {part.why}" for part in report.unfinished),
            report=folder,
            seconds=report.seconds,
            **known,
        )

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {**asdict(self), "labels": list(self.labels)}


def _mismatch(report: Report) -> dict[str, str]:
    known = {}
    if report.mismatch is not None:
        found = report.mismatch
        known = {"kind": found.kind, "summary": found.summary, "signature": found.fingerprint}
    if report.localization is not None:
        known["component"] = report.localization.component or ""
        known["backend"] = report.localization.backend or ""
    smallest = report.minimal or report.original
    return {**known, "operators": " ".join(operators(smallest.source)) if smallest else ""}


def _range(report: Report) -> dict[str, str]:
    known: dict[str, str | None] = {}
    broke = report.bisect.regression if report.bisect else None
    mended = report.bisect.fix if report.bisect else None
    if broke is not None:
        known |= {"last_good": broke.last_good, "first_bad": broke.first_bad, "bad_commit": broke.commit}
    if mended is not None:
        known |= {"last_bad": mended.last_bad, "first_fixed": mended.first_fixed, "fix_commit": mended.commit}
    return {name: value or "" for name, value in known.items()}
