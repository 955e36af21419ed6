"""The summary on a terminal: what was found, the minimal script, and where the files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from torchbisect.reports.escape import clean, one_line
from torchbisect.reports.findings import ranges, sentence
from torchbisect.reports.report import Report

_VERDICTS = {
    "mismatch": ("mismatch", "bold red"),
    "none": ("no mismatch", "bold green"),
    "flaky": ("flaky", "bold yellow"),
    "untestable": ("untestable", "bold yellow"),
}


def summary(report: Report, files: Sequence[Path] = (), *, script_lines: int = 40) -> RenderableType:
    """What a person wants to see at the end of a run.

    Args:
        report: any report.
        files: where it was written to.
        script_lines: of a longer minimal script only so many lines are shown.
    """
    parts: list[RenderableType] = [_verdict(report)]
    parts += _localisation(report)
    parts += [_line("builds", sentence(found)) for found in ranges(report.bisect)]
    parts += [_line("not finished", f"{part.part}: {part.why}", "yellow") for part in report.unfinished]
    parts += _minimal(report, script_lines)
    parts += [_line("written", str(path)) for path in files]
    if report.state == "interrupted":
        parts.append(_line("interrupted", "the same command goes on where it stopped", "yellow"))
    return Group(*parts)


def _line(label: str, words: str, style: str = "") -> Text:
    """A label and its words. ``Text`` and not markup: what a script says must not colour or hide anything."""
    return Text.assemble((f"{label:<14}", "dim"), (one_line(words, 400), style))


def _verdict(report: Report) -> Text:
    word, style = _VERDICTS[report.verdict]
    what = report.mismatch.summary if report.mismatch else report.reason or ""
    where = f"(torch {report.environment.torch})" if report.environment else ""
    return Text.assemble((f"{word:<14}", style), one_line(what, 400), (f" {one_line(where, 80)}", "dim"))


def _localisation(report: Report) -> list[RenderableType]:
    localisation = report.localisation
    if localisation is None or not localisation.backend:
        return []
    pointed = f", points to {localisation.component}" if localisation.component else ""
    lines: list[RenderableType] = [_line("backend", f"first shown by {localisation.backend}{pointed}")]
    if localisation.fixed_by:
        lines.append(_line("workaround", "; or ".join(localisation.fixed_by)))
    return lines


def _minimal(report: Report, limit: int) -> list[RenderableType]:
    minimal = report.minimal
    if minimal is None:
        return []
    before = minimal.original
    lines = clean(minimal.source).rstrip("\n").split("\n")
    shown = "\n".join(lines[:limit])
    parts: list[RenderableType] = [
        _line(
            "minimal", f"{minimal.lines} lines, {minimal.bytes} bytes (from {before.lines} lines, {before.bytes} bytes)"
        ),
        Padding(Syntax(shown, "python", theme="ansi_dark", background_color="default", word_wrap=True), (1, 2)),
    ]
    if len(lines) > limit:
        parts.append(_line("", "the rest of it is in the file"))
    return parts
