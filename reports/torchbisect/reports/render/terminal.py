"""Render the summary for a terminal: the findings, the minimal script, and the paths of the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.syntax import Syntax
from rich.text import Text

from torchbisect.core.printable import clean, one_line
from torchbisect.reports.model.measurement import MeasuredBuild, MeasurementReport, sparkline
from torchbisect.reports.model.report import MinimalScript, Report
from torchbisect.reports.model.search_results import proof_sentence, ranges, sentence
from torchbisect.reports.render.measurement_section import row_texts

_VERDICTS = {
    "mismatch": ("mismatch", "bold red"),
    "none": ("no mismatch", "bold green"),
    "flaky": ("flaky", "bold yellow"),
    "untestable": ("untestable", "bold yellow"),
}
_LABEL = 14
#: A label, its text, the style of the label and the style of the text.
SummaryLine = tuple[str, str, str, str]


def summary(report: Report, files: Sequence[Path] = (), *, script_lines: int = 40, hint: str = "") -> Text:
    """Return the summary that ends a run, for a console with ``soft_wrap``: lines are neither cut nor padded.

    Args:
        files: the files that were written.
        script_lines: the most lines of the minimal script that are shown.
        hint: the next step of the reader.
    """
    parts = [columns(_found(report))]
    if report.minimal is not None:
        parts.append(_script(report.minimal, script_lines))
    parts.append(
        columns([*_confirmed(report.minimal), *_ending(report, files), *([("next", hint, "dim", "")] if hint else ())])
    )
    return Text("\n").join(part for part in parts if part)


def columns(lines: Iterable[SummaryLine]) -> Text:
    """Return labels and texts, a line each, without rich markup: a script's words must not color or hide anything."""
    rows = []
    for label, words, label_style, style in lines:
        label = one_line(label, 80)  # the name of a measured number is the user's own
        space = " " * max(2, _LABEL - len(label))
        rows.append(Text.assemble((label, label_style), space, (one_line(words, 400), style)))
    return Text("\n").join(rows)


def _found(report: Report) -> Iterator[SummaryLine]:
    word, style = ("interrupted", "bold yellow") if report.unobserved else _VERDICTS[report.verdict]
    shown = report.shown_mismatch
    yield word, shown.summary if shown else report.reason or "", style, ""
    if report.original_summary:
        yield "original", report.original_summary, "dim", ""
    if report.environment:
        yield "torch", report.environment.torch, "dim", ""
    localization = report.localization
    if localization and localization.backend:
        likely = f"; likely component: {localization.component}" if localization.component else ""
        yield "backend", f"first shown by {localization.backend}{likely}", "dim", ""
        if localization.compiler_bisector:
            yield "part", f"{localization.compiler_bisector.text}, according to torch's compiler_bisector", "dim", ""
        if localization.fixed_by:
            yield "workaround", "; or ".join(localization.fixed_by), "dim", ""
    yield from _measured(report.measurement)
    for found in ranges(report.bisect):
        yield "builds", sentence(found), "dim", ""
        for proof in found.result.proofs:
            yield "proof", proof_sentence(proof), "dim", ""
    if minimal := report.minimal:
        before = minimal.original
        size = f"{minimal.lines} lines, {minimal.bytes} bytes (from {before.lines} lines, {before.bytes} bytes)"
        yield "minimal", size, "dim", ""


def _measured(found: MeasurementReport | None) -> Iterator[SummaryLine]:
    if found is None:
        return
    rows = found.with_ratio
    for row in rows:
        if row.build == found.against:
            yield "noise", f"torch {row.build} against itself: {' '.join(_interval(row, found.unit))}", "dim", ""
    if len(rows) > 1:
        line = sparkline([row.ratio or 0.0 for row in rows])
        yield found.measure, f"{line}  torch {rows[0].build} to {rows[-1].build}", "dim", ""
    if found.words:
        yield "shape", found.words, "dim", ""
    if found.kernels:
        paths = " and ".join(one.path for one in found.kernels)
        yield "kernels", f"the code that inductor generated on both builds: {paths}", "dim", ""
    for one in found.flags:
        yield "flag", f"no longer worse with {one.flag}", "dim", ""


def _interval(row: MeasuredBuild, unit: str) -> tuple[str, str]:
    _, ratio, interval, pairs = row_texts(row, unit)
    return ratio, f"({interval}), {pairs} pairs"


def _script(minimal: MinimalScript, limit: int) -> Text:
    """Return the script as it can be copied from the terminal and pasted into a file."""
    lines = [line.rstrip() for line in clean(minimal.source).rstrip("\n").split("\n")]
    if len(lines) > limit:
        lines = [*lines[:limit], f"# the other {len(lines) - limit} lines are in {minimal.path}"]
    text = Syntax("", "python", theme="ansi_dark", background_color="default").highlight("\n".join(lines))
    return Text("\n").join([Text(), *text.split("\n"), Text()])


def _confirmed(minimal: MinimalScript | None) -> Iterator[SummaryLine]:
    """Yield the exit statuses of the minimal script under plain Python, build by build, or how to measure it."""
    if minimal is not None and minimal.command is not None:
        yield "measure it", minimal.command, "dim", ""
    runs = dict.fromkeys(
        f"{run.build}{' without compile' if run.eager else ''}: "
        f"{'timed out' if run.status is None else f'exit {run.status}'}"
        for run in (minimal.confirmed if minimal else ())
    )
    if runs:
        yield "plain python", "; ".join(runs), "dim", ""


def _ending(report: Report, files: Sequence[Path]) -> Iterator[SummaryLine]:
    for part in report.unfinished:
        yield "not finished", f"{part.part}: {part.why}", "yellow", "yellow"
    for notice in report.notices:
        yield "note", notice, "yellow", ""
    for path in files:
        yield "written", str(path), "dim", ""
    if report.state == "interrupted" and not report.unobserved:
        yield "interrupted", "the same command continues where it stopped", "yellow", "yellow"
