"""The summary on a terminal: what was found, the minimal script, and where the files are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from torchbisect.reports.escape import clean, one_line
from torchbisect.reports.model.ranges import ranges, sentence
from torchbisect.reports.model.report import MinimalScript, Report

_VERDICTS = {
    "mismatch": ("mismatch", "bold red"),
    "none": ("no mismatch", "bold green"),
    "flaky": ("flaky", "bold yellow"),
    "untestable": ("untestable", "bold yellow"),
}
#: A label, what is said, and the style of both.
Line = tuple[str, str, str, str]


def summary(report: Report, files: Sequence[Path] = (), *, script_lines: int = 40) -> RenderableType:
    """What a person wants to see at the end of a run.

    Args:
        report: any report.
        files: where it was written to.
        script_lines: of a longer minimal script only so many lines are shown.
    """
    parts: list[RenderableType] = [_grid([*_found(report), *_size(report.minimal)])]
    if report.minimal is not None:
        parts.append(_script(report.minimal, script_lines))
    parts.append(_grid([*_confirmed(report.minimal), *_ending(report, files)]))
    return Group(*parts)


def _grid(lines: Sequence[Line]) -> Table:
    """Labels beside their words. ``Text`` and not markup: what a script says must not colour or hide anything."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, min_width=12)
    table.add_column(overflow="fold")
    for label, words, label_style, style in lines:
        table.add_row(Text(label, label_style), Text(one_line(words, 400), style))
    return table


def _found(report: Report) -> Iterator[Line]:
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
            yield "part", f"{localization.compiler_bisector.text}, says torch's compiler_bisector", "dim", ""
        if localization.fixed_by:
            yield "workaround", "; or ".join(localization.fixed_by), "dim", ""
    for found in ranges(report.bisect):
        yield "builds", sentence(found), "dim", ""


def _size(minimal: MinimalScript | None) -> Iterator[Line]:
    if minimal is not None:
        before = minimal.original
        size = f"{minimal.lines} lines, {minimal.bytes} bytes (from {before.lines} lines, {before.bytes} bytes)"
        yield "minimal", size, "dim", ""


def _script(minimal: MinimalScript, limit: int) -> RenderableType:
    lines = clean(minimal.source).rstrip("\n").split("\n")
    shown = "\n".join(lines[:limit] + (["# ... the rest of it is in the file"] if len(lines) > limit else []))
    return Padding(Syntax(shown, "python", theme="ansi_dark", background_color="default", word_wrap=True), (1, 2))


def _confirmed(minimal: MinimalScript | None) -> Iterator[Line]:
    """How the minimal script ended under plain Python, build by build."""
    runs = dict.fromkeys(
        f"{run.build}{' without compile' if run.eager else ''}: "
        f"{'timed out' if run.status is None else f'exit {run.status}'}"
        for run in (minimal.confirmed if minimal else ())
    )
    if runs:
        yield "plain python", "; ".join(runs), "dim", ""


def _ending(report: Report, files: Sequence[Path]) -> Iterator[Line]:
    for part in report.unfinished:
        yield "not finished", f"{part.part}: {part.why}", "yellow", "yellow"
    for notice in report.notices:
        yield "to know", notice, "yellow", ""
    for path in files:
        yield "written", str(path), "dim", ""
    if report.state == "interrupted":
        yield "interrupted", "the same command goes on where it stopped", "yellow", "yellow"
