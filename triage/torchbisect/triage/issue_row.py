"""The row of an issue: its result, as the database stores it and the table and the page show it."""

from __future__ import annotations

import ast
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from torchbisect.core.python_text import parse_or_none
from torchbisect.reports.model.report import Report
from torchbisect.reports.render.labels import suggest

WAITING = "waiting"
NOTHING_TO_RUN = "nothing-to-run"
FAILED = "failed"
KNOWN = "known"
STATES = ("mismatch", "flaky", "untestable", FAILED, KNOWN, "none", NOTHING_TO_RUN, WAITING)
"""All states of an issue, the most interesting one first.

``mismatch``, ``flaky``, ``untestable`` and ``none`` are the verdicts of reports. ``nothing-to-run``: the issue has no
script. ``failed``: the machine or torchbisect failed, so the same command tries again. ``known``: the ledger has this
script, so it was not run. ``waiting``: not run yet.
"""

#: The next run of the same command runs issues in these states.
OPEN = frozenset({WAITING, FAILED})


@dataclass(frozen=True)
class IssueRow:
    """The known facts about one issue.

    Attributes:
        name: ``OWNER/REPO#N``, or the path of a script.
        key: a fingerprint of the script and of all options; a changed key needs a new run.
        title: the issue's title.
        url: the address for people.
        state: one of ``STATES``.
        reason: the reason for a state other than ``mismatch`` and ``none``, in one line.
        torch: the version of torch that it ran on.
        kind: the kind of mismatch.
        summary: the mismatch in one line.
        signature: the fingerprint of the mismatch's signature.
        component: the part of the compiler that the mismatch points to.
        backend: the first backend that shows it.
        operators: the operators that the smallest known script calls, in alphabetical order.
        last_good: the newest good build before the regression.
        first_bad: the first bad build.
        bad_commit: the commit that caused the regression, if it was found.
        last_bad: the newest bad build before the fix.
        first_fixed: the first build with the fix.
        fix_commit: the commit that fixed it, if it was found.
        labels: suggested labels.
        unfinished: parts of the run that could not finish, in one line.
        report: the folder of its report, relative to the database's folder.
        seconds: the duration of the run.
        finished: the end of the run, in ISO 8601.
        stated: the version of torch that the issue states, if that was asked for and another one was run.
        known: the bug of the ledger that it looks like, in words: ``same as NAME, fixed in 2.14.0``.
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
    stated: str = ""
    known: str = ""

    def with_report(self, report: Report, folder: str) -> IssueRow:
        """Return this row with the result of a run, whose report lies in ``folder``, relative to the database's."""
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
        """Return the row as ``--json`` prints it."""
        return {**asdict(self), "labels": list(self.labels)}


def _mismatch(report: Report) -> dict[str, str]:
    known = {}
    if found := report.mismatch:
        known = {"kind": found.kind, "summary": found.summary, "signature": found.fingerprint}
    if place := report.localization:
        known |= {"component": place.component or "", "backend": place.backend or ""}
    smallest = report.minimal or report.original
    return {**known, "operators": " ".join(called_operators(smallest.source)) if smallest else ""}


def _range(report: Report) -> dict[str, str]:
    known: dict[str, str | None] = {}
    if report.bisect and (broke := report.bisect.regression):
        known |= {"last_good": broke.last_good, "first_bad": broke.first_bad, "bad_commit": broke.commit}
    if report.bisect and (fix := report.bisect.fix):
        known |= {"last_bad": fix.last_bad, "first_fixed": fix.first_fixed, "fix_commit": fix.commit}
    return {name: value or "" for name, value in known.items()}


#: Names that scripts call to make tensors, to compile, to print or to check; almost every script has them.
_COMMON = frozenset(
    ("allclose", "arange", "append", "assert_close", "backward", "clone", "close", "compile", "detach", "empty")
    + ("equal", "eval", "format", "full", "item", "join", "linspace", "manual_seed", "ones", "ones_like", "print")
    + ("rand", "rand_like", "randint", "randn", "randn_like", "randperm", "requires_grad_", "reset", "tensor")
    + ("zeros", "zeros_like")
)
_SPECIAL = re.compile(r"__\w+__")


def called_operators(source: str) -> tuple[str, ...]:
    """Return the methods, module functions, arithmetic and indexing that a script uses, in alphabetical order.

    A call of a plain name is left out, because it is a function of the script itself. The result is empty for a text
    that is not Python.
    """
    tree = parse_or_none(source)
    if tree is None:
        return ()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(node.func.attr)
        elif isinstance(node, ast.Subscript):
            found.add("getitem" if isinstance(node.ctx, ast.Load) else "setitem")
        elif isinstance(node, ast.BinOp):
            found.add(type(node.op).__name__.lower())
    return tuple(sorted(name for name in found - _COMMON if not _SPECIAL.fullmatch(name)))
