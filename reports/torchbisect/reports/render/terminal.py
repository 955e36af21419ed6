"""Render the summary for a terminal: the findings, the minimal script, and the paths of the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from torchbisect.reports.model.report import MinimalScript, Report
from torchbisect.reports.model.search_results import ranges, sentence
from torchbisect.reports.sanitize import clean, one_line

_VERDICTS = {
    "mismatch": ("mismatch", "bold red"),
    "none": ("no mismatch", "bold green"),
    "flaky": ("flaky", "bold yellow"),
    "untestable": ("untestable", "bold yellow"),
}
#: A label, its text, the style of the label and the style of the text.
SummaryLine = tuple[str, str, str, str]


def summary(report: Report, files: Sequence[Path] = (), *, script_lines: int = 40) -> RenderableType:
    """Return the summary that ends a run: it names the written files and shows some lines of the minimal script."""
    parts: list[RenderableType] = [_grid(_found(report))]
    if report.minimal is not None:
        parts.append(_script(report.minimal, script_lines))
    parts.append(_grid([*_confirmed(report.minimal), *_ending(report, files)]))
    return Group(*parts)


def _grid(lines: Iterable[SummaryLine]) -> Table:
    """Return a grid of labels and texts, without rich markup: a script's words must not color or hide anything."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, min_width=12)
    table.add_column(overflow="fold")
    for label, words, label_style, style in lines:
        table.add_row(Text(label, label_style), Text(one_line(words, 400), style))
    return table


def _found(report: Report) -> Iterator[SummaryLine]:
    word, style = _VERDICTS[report.verdict]
    what = report.mismatch.summary if report.mismatch else report.reason or ""
    yield word, what, style, ""
    if report.environment:
        yield "torch", report.environment.torch, "dim", ""
    localization = report.localization
    if localization and localization.backend:
        pointed = f", points to {localization.component}" if localization.component else ""
        yield "backend", f"first shown by {localization.backend}{pointed}", "dim", ""
        if localization.compiler_bisector:
            yield "part", f"{localization.compiler_bisector.text}, according to torch's compiler_bisector", "dim", ""
        if localization.fixed_by:
            yield "workaround", "; or ".join(localization.fixed_by), "dim", ""
    for found in ranges(report.bisect):
        yield "builds", sentence(found), "dim", ""
    if minimal := report.minimal:
        before = minimal.original
        size = f"{minimal.lines} lines, {minimal.bytes} bytes (from {before.lines} lines, {before.bytes} bytes)"
        yield "minimal", size, "dim", ""


def _script(minimal: MinimalScript, limit: int) -> RenderableType:
    lines = clean(minimal.source).rstrip("\n").split("\n")
    shown = "\n".join(lines[:limit] + (["# ... the rest is in the file"] if len(lines) > limit else []))
    return Padding(Syntax(shown, "python", theme="ansi_dark", background_color="default", word_wrap=True), (1, 2))


def _confirmed(minimal: MinimalScript | None) -> Iterator[SummaryLine]:
    """Yield the exit statuses of the minimal script under plain Python, build by build."""
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
    if report.state == "interrupted":
        yield "interrupted", "the same command continues where it stopped", "yellow", "yellow"
