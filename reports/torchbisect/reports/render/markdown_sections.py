"""Sections of ``report.md``: each function renders one part of the report as safe Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torchbisect.bisect import wording
from torchbisect.core.printable import one_line
from torchbisect.reports.model.report import (
    AblationRow,
    Condition,
    Confirmation,
    EnvironmentReport,
    MismatchReport,
    Report,
)
from torchbisect.reports.model.search_results import (
    BisectReport,
    BuildFacts,
    ChangeRange,
    CommitProof,
    SuspectCommit,
    ranges,
    verdicts_in_order,
)
from torchbisect.reports.sanitize import Markdown, code, code_cell, prose, without_machine_paths

ANSWERS = {
    "same": "the same mismatch",
    "none": "agrees with eager",
    "other": "another mismatch",
    "untestable": "could not be tested",
}
STATUSES = ("good", "bad", "untestable")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LINK = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:compare|commit|pull)/[\w.^~-]+")
_REPOSITORY = "https://github.com/pytorch/pytorch"


def text(words: str, limit: int = 400) -> Markdown:
    """Return words of a report as prose, without the machine's paths."""
    return prose(without_machine_paths(words[: 8 * limit]), limit)


def span(words: str, limit: int = 200) -> Markdown:
    """Return words of a report as a code span, without the machine's paths."""
    return code(without_machine_paths(words[: 8 * limit]), limit)


def cell(words: str, limit: int = 200) -> Markdown:
    """Return words of a report as a code span for a table cell, without the machine's paths."""
    return code_cell(without_machine_paths(words[: 8 * limit]), limit)


def figure(value: Any) -> str:
    """Format a measured number: whole numbers in full, others with six digits."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return one_line(str(value), 80)


def sides(mismatch: MismatchReport) -> list[Markdown]:
    """Return the expected result, the compiled one, and the place of the difference, a line each."""
    lines = []
    if mismatch.eager:
        lines.append(Markdown(f"expected, as in eager mode: {span(mismatch.eager)}"))
    if mismatch.compiled:
        lines.append(Markdown(f"compiled: {span(mismatch.compiled)}"))
    where = [f"at {span(mismatch.place)}"] if mismatch.place else []
    where += [f"in {span(mismatch.attribute)}"] if mismatch.attribute else []
    if where:
        lines.append(Markdown(f"seen {', '.join(where)} (kind: {span(mismatch.kind)})"))
    else:
        lines.append(Markdown(f"kind: {span(mismatch.kind)}"))
    lines += _figures(mismatch.details)
    if mismatch.runs:
        lines.append(Markdown(f"shown in {mismatch.shown} of {mismatch.runs} runs"))
    return lines


def _figures(details: Mapping[str, Any]) -> list[Markdown]:
    lines = []
    if "count" in details and "numel" in details:
        lines.append(f"{figure(details['count'])} of {figure(details['numel'])} elements differ")
    if "largest" in details:
        at = f" at index {span(figure(details['index']))}" if details.get("index") is not None else ""
        lines.append(f"largest difference {span(figure(details['largest']))}{at}")
    if "error" in details and "bound" in details:
        error, bound = span(figure(details["error"])), span(figure(details["bound"]))
        lines.append(f"error against a float64 run {error}, where {bound} is allowed")
    return [Markdown(line) for line in lines]


def confirmation_rows(confirmed: Sequence[Confirmation]) -> list[list[Markdown]]:
    """Return table rows for the runs under plain ``python``, as safe Markdown."""
    return [
        [cell(build), Markdown(mode), Markdown(status), cell(words, 160)]
        for build, mode, status, words in runs(confirmed)
    ]


def runs(confirmed: Sequence[Confirmation]) -> list[tuple[str, str, str, str]]:
    """Return build, compile mode, exit status and last line of output of each run; equal runs share a row."""
    alike = Counter((run.build, run.eager, run.status, run.last_words.strip().rpartition("\n")[2]) for run in confirmed)
    return [
        (
            build,
            "replaced by a no-op" if eager else "active",
            ("timed out" if status is None else str(status)) + _times(count),
            words,
        )
        for (build, eager, status, words), count in alike.items()
    ]


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def condition_lines(conditions: Sequence[Condition]) -> list[Markdown]:
    """Return the statements about when the script fails, each with its counts."""
    return [
        Markdown(f"{text(condition.statement)} ({condition.shown} of {condition.tried} variants without it failed)")
        for condition in conditions
    ]


def ablation_rows(table: Sequence[AblationRow]) -> list[list[Markdown]]:
    """Return backend, settings and verdict of each question."""
    return [
        [
            cell(row.backend) if row.backend else Markdown("as in the script"),
            cell(row.settings),
            _with_reason(ANSWERS.get(row.verdict), row.verdict, row.reason),
        ]
        for row in table
    ]


def _with_reason(known: str | None, verdict: str, reason: str | None) -> Markdown:
    shown = known or cell(verdict)
    return Markdown(f"{shown}: {cell(reason)}" if reason else shown)


def tested_rows(bisect: BisectReport, builds: Mapping[str, BuildFacts], limit: int) -> list[list[Markdown]]:
    """Return build, date and verdict of the tested builds, from old to new; a cut keeps those nearest to a change."""
    rows = verdicts_in_order(bisect, builds)
    if len(rows) > limit:
        ends = {name for found in ranges(bisect) for name in (found.before, found.after)}
        at = [number for number, row in enumerate(rows) if row.build in ends] or [len(rows) - 1]
        near = sorted(range(len(rows)), key=lambda number: (min(abs(number - end) for end in at), number))[:limit]
        rows = [rows[number] for number in sorted(near)]
    alike = Counter((row.build, row.verdict, row.reason) for row in rows)
    return [
        [
            cell(build),
            cell((builds[build].date or "") if build in builds else ""),
            Markdown(_with_reason(verdict if verdict in STATUSES else None, verdict, reason) + _times(count)),
        ]
        for (build, verdict, reason), count in alike.items()
    ]


def end_lines(found: ChangeRange, builds: Mapping[str, BuildFacts]) -> list[Markdown]:
    """Return the facts about the builds on both sides of a change, a line each."""
    lines = []
    for name, role in ((found.before, found.words.before), (found.after, found.words.after)):
        if name is None or name not in builds:
            continue
        facts = builds[name]
        parts = [f"commit {commit_link(facts.commit)}"] if facts.commit else []
        if facts.git_version and facts.git_version != facts.commit:
            parts.append(f"git_version {commit_link(facts.git_version)}")
        parts += [f"of {span(facts.date)}"] if facts.date else []
        parts += [f"triton {span(facts.triton)}"] if facts.triton else []
        if parts:
            lines.append(Markdown(f"{role}: {span(name)}, {', '.join(parts)}"))
    return lines


def commit_link(commit: str) -> Markdown:
    """Return a link to a commit of PyTorch; a text that is not a hash becomes a code span."""
    if not _COMMIT.fullmatch(commit):
        return span(commit, 64)
    return Markdown(f"[`{commit[:12]}`]({_REPOSITORY}/commit/{commit})")


def compare_link(found: ChangeRange, builds: Mapping[str, BuildFacts]) -> Markdown | None:
    """Return a link to the commits of a range: the search's own, or one made of the commits of both ends."""
    if found.result.compare:
        return link(found.result.compare)
    ends = [builds[name].commit or "" for name in (found.before, found.after) if name is not None and name in builds]
    if len(ends) < 2 or not all(map(_COMMIT.fullmatch, ends)) or ends[0] == ends[1]:
        return None
    return link(f"{_REPOSITORY}/compare/{ends[0]}...{ends[1]}")


def link(address: str | None) -> Markdown | None:
    """Return an address on GitHub as a bare link; ``None`` for any other address."""
    return Markdown(address) if address and _LINK.fullmatch(address) else None


def suspect_lines(suspects: Sequence[SuspectCommit]) -> list[Markdown]:
    """Return the suspected commits, a line each, with the reasons."""
    lines = []
    for suspect in suspects:
        pieces = [f"{commit_link(suspect.commit)} {text(suspect.title, 160)}"]
        pieces += filter(None, [link(suspect.url)])
        pieces += [text(reason, 160) for reason in suspect.reasons[:8]]
        lines.append(Markdown("; ".join(pieces)))
    return lines


def proof_lines(proofs: Sequence[CommitProof]) -> list[Markdown]:
    """Return what builds with the bug do without a commit, or with it, a line each."""
    return [
        Markdown(
            f"{wording.change_verb(proof.reverted)} {commit_link(proof.commit)} on {span(proof.build)} "
            f"{text(wording.proof_result(proof.passes, proof.reason))}"
        )
        for proof in proofs
    ]


def environment_lines(environment: EnvironmentReport) -> list[Markdown]:
    """Return the versions of the environment, a line each."""
    labels = {"python": "Python", "cuda": "CUDA that torch was built for"}
    names = ("torch", "git_version", "python", "platform", "cuda", "triton")
    known = [(labels.get(name, name), getattr(environment, name)) for name in names]
    return [Markdown(f"{label}: {span(value)}") for label, value in known if value]


def title(report: Report) -> Markdown | None:
    """Return a title for an issue; ``None`` without a mismatch."""
    shown = report.shown_mismatch
    if shown is None or report.verdict != "mismatch":
        return None
    component = report.localization.component if report.localization else None
    # Measured builds may differ in eager mode too.
    component = component or ("torch" if report.measurement else "torch.compile")
    return span(f"[{component}] {shown.summary}", 160)


def headline(report: Report) -> Markdown:
    """Return the first sentence of the report: the mismatch, or the reason why there is none."""
    if report.shown_mismatch is not None:
        return text(report.shown_mismatch.summary)
    if report.unobserved:
        return Markdown("The run was interrupted before there was a verdict; the same command continues.")
    words = {
        "none": "No mismatch",
        "flaky": "The result changes from run to run",
        "untestable": "The script could not be tested",
    }.get(report.verdict, "Nothing was found")
    return Markdown(f"{words}: {text(report.reason)}" if report.reason else f"{words}.")
