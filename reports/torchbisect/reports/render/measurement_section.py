"""The section of ``report.md`` about builds that were compared by a number, and the words that all renderings share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchbisect.probe.measure.kernel_calls import aligned
from torchbisect.probe.measure.measure import format_value
from torchbisect.probe.measure.paired_test import Ratio
from torchbisect.reports.model.measurement import FlagEffect, MeasuredBuild, MeasurementReport, sparkline
from torchbisect.reports.model.search_results import BuildFacts
from torchbisect.reports.render.markdown_sections import cell, span, text
from torchbisect.reports.sanitize import Markdown

_ANSWERS = {"worse": "worse", "not-worse": "not worse"}


def row_texts(row: MeasuredBuild, unit: str) -> tuple[str, str, str, str]:
    """Return a build's number, ratio, interval and pairs, as plain text; a dash where there is none."""
    value = "-" if row.value is None else format_value(row.value, unit)
    ratio = "-" if row.ratio is None else f"{row.ratio:.3g}"
    interval = "-" if row.low is None or row.high is None else f"{row.low:.3g} to {row.high:.3g}"
    return value, ratio, interval, str(row.pairs or "-")


def answer_text(row: MeasuredBuild) -> str:
    """Return a build's answer with its reason."""
    said = _ANSWERS.get(row.answer, row.answer)
    return f"{said}: {row.reason}" if row.reason else said


def counts_text(row: MeasuredBuild) -> str:
    """Return the compiler's counts that differ from the reference's: ``kernel-count 3 → 7``."""
    return ", ".join(f"{one.name} {one.reference:g} → {one.value:g}" for one in row.counts)


def measurement(
    found: MeasurementReport | None, builds: Mapping[str, BuildFacts], most: int
) -> Mapping[str, Any] | None:
    """Return the section as safe Markdown: a table, a sparkline, and how it was measured."""
    if found is None or not found.builds:
        return None
    rows = []
    for row in found.builds[:most]:
        value, ratio, interval, pairs = row_texts(row, found.unit)
        answer = "; ".join(filter(None, [answer_text(row), counts_text(row)]))
        if row.build == found.against:
            answer = f"against itself: {answer}"
        # The unit is text of the report; a dash alone is ours.
        shown = Markdown(value) if row.value is None else text(value)
        rows.append([cell(row.build), shown, *(Markdown(one) for one in (ratio, interval, pairs)), text(answer)])
    ratios = [row.ratio or 0.0 for row in found.with_ratio]
    line = [sparkline(ratios)] if len(ratios) > 1 else []
    line += [text(found.words)] if found.words else []
    return {
        "title": Markdown(f"Worse by {found.worse_by:g} or more, against torch {span(found.against)}"),
        "measure": span(found.measure),
        "against": span(found.against),
        "rows": rows,
        "kernels": _kernels(found, most),
        "flags": [[span(one.flag), Markdown(flag_ratio(one))] for one in found.flags[:most]],
        "line": Markdown(" ".join(line)) if line else None,
        "how": [text(one) for one in found.how],
    }


def flag_ratio(effect: FlagEffect) -> str:
    """Return the ratio with a flag and its interval: ``1.02 (1 to 1.04)``."""
    if effect.ratio is None or effect.low is None or effect.high is None:
        return "-"
    return Ratio(effect.ratio, effect.low, effect.high).words


def _kernels(found: MeasurementReport, most: int) -> Mapping[str, Any] | None:
    """Return the table of the kernels of both builds, and the names of the files with their code."""
    if len(found.kernels) != 2:
        return None
    left, right = found.kernels
    rows = list(aligned(left.calls, right.calls))
    shown = [[cell(name) if name else Markdown("-") for name in row] for row in rows[:most]]
    files = Markdown(f"The code that inductor generated is in {span(left.path)} and {span(right.path)}.")
    return {
        "builds": [Markdown(f"calls on torch {span(one.build)}: {len(one.calls)}") for one in found.kernels],
        "rows": shown,
        "files": files,
    }
