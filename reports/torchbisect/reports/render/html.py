"""Render ``report.html``: one self-contained page without scripts or external resources."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from torchbisect.core.printable import clean, one_line
from torchbisect.probe.measure.kernel_calls import aligned
from torchbisect.reports.model.measurement import MeasurementReport
from torchbisect.reports.model.report import LocalizationReport, MinimalScript, MismatchReport, ReductionStep, Report
from torchbisect.reports.model.search_results import (
    BisectReport,
    BuildFacts,
    ChangeRange,
    left_out,
    proof_sentence,
    ranges,
    sentence,
    verdicts_in_order,
)
from torchbisect.reports.render import charts
from torchbisect.reports.render.error_logs import cut_log
from torchbisect.reports.render.labels import suggest
from torchbisect.reports.render.markdown_sections import ANSWERS, figure, runs
from torchbisect.reports.render.measurement_chart import ratio_chart
from torchbisect.reports.render.measurement_section import answer_text, counts_text, flag_ratio, row_texts
from torchbisect.reports.sanitize import in_one_folder, short_line, without_machine_paths

_TITLES = {"mismatch": "Mismatch", "none": "No mismatch", "flaky": "Flaky", "untestable": "Could not be tested"}
_SIGNS = {"same": "bad", "none": "good", "other": "untestable", "untestable": "untestable"}


def render(report: Report) -> str:
    """Render the report as one HTML page, for a browser without network or scripts."""
    return template("report.html.j2").render(_context(report))


def _cleaned(value: Any) -> Any:
    """Replace characters that hide, move or reverse text; the escaping for HTML comes after this."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def template(name: str, *packages: str) -> jinja2.Template:
    """Load a page's template; rendering cleans and escapes every value that is not ``Markup``.

    Args:
        name: the file in a package's ``templates`` folder.
        packages: packages to search before ``torchbisect.reports``.
    """
    return _environment(packages).get_template(name)


@functools.cache
def _environment(packages: tuple[str, ...]) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([*map(jinja2.PackageLoader, packages), jinja2.PackageLoader("torchbisect.reports")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_cleaned,
    )


def _context(report: Report) -> dict[str, Any]:
    mismatch, environment = report.shown_mismatch, report.environment
    return {
        "title": "Interrupted" if report.unobserved else _TITLES[report.verdict],
        "verdict": report.verdict,
        "summary": short_line(mismatch.summary if mismatch else report.reason or ""),
        "original": short_line(report.original_summary),
        "facts": _facts(report),
        "sides": _sides(mismatch) if report.measurement is None else None,
        "measurement": _measurement(report.measurement),
        "values": _values(mismatch),
        "localization": _localization(report.localization),
        "builds": _builds(report.bisect, report.builds),
        "minimal": _minimal(report),
        "conditions": report.conditions or (),
        "unfinished": [{"part": short_line(part.part), "why": short_line(part.why)} for part in report.unfinished],
        "logs": _logs(report),
        "collect_env": without_machine_paths(clean((environment and environment.collect_env) or "")).strip(),
        "notices": [short_line(notice) for notice in report.notices],
        "command": in_one_folder(one_line(report.command, 1000)),
        "labels": suggest(report),
        "version": short_line(report.versions.get("torchbisect", ""), 40),
    }


def _facts(report: Report) -> list[tuple[str, str]]:
    environment = report.environment
    labels = {"git_version": "Commit", "python": "Python", "cuda": "CUDA", "platform": "Platform"}
    names = ("torch", "git_version", "python", "cuda", "triton", "platform")
    known = [("Script", report.original.name if report.original else None)]
    known += [(labels.get(name, name), getattr(environment, name)) for name in names if environment]
    known.append(("Started", report.started))
    return [(name, short_line(value, 120)) for name, value in known if value]


def _sides(mismatch: MismatchReport | None) -> Mapping[str, Any] | None:
    if mismatch is None:
        return None
    return {
        **{name: short_line(getattr(mismatch, name) or "") for name in ("eager", "compiled", "place", "attribute")},
        **{name: getattr(mismatch, name) for name in ("kind", "runs", "shown")},
    }


def _kernels(found: MeasurementReport) -> Mapping[str, Any] | None:
    if len(found.kernels) != 2:
        return None
    calls = [[short_line(name, 200) for name in one.calls] for one in found.kernels]
    return {
        "builds": [f"calls on torch {short_line(one.build, 80)}: {len(one.calls)}" for one in found.kernels],
        "rows": list(aligned(*calls)),
        "paths": [short_line(one.path, 200) for one in found.kernels],
    }


def _measurement(found: MeasurementReport | None) -> Mapping[str, Any] | None:
    if found is None:
        return None
    kinds = {"worse": "bad", "not-worse": "good"}
    rows = [
        {
            "build": short_line(row.build, 80),
            "cells": [short_line(cell) for cell in row_texts(row, found.unit)],
            "kind": kinds.get(row.answer, "untestable"),
            "answer": short_line(answer_text(row)),
            "counts": short_line(counts_text(row)),
        }
        for row in found.builds
    ]
    return {
        "measure": short_line(found.measure, 80),
        "against": short_line(found.against, 80),
        "rows": rows,
        "chart": ratio_chart(found),
        "words": short_line(found.words),
        "kernels": _kernels(found),
        "flags": [[short_line(one.flag, 200), flag_ratio(one)] for one in found.flags],
        "how": [short_line(line) for line in found.how],
    }


def _values(mismatch: MismatchReport | None) -> Mapping[str, Any] | None:
    if mismatch is None:
        return None
    details = mismatch.details
    words = (
        ("count", "Elements that differ"),
        ("numel", "Elements in total"),
        ("largest", "Largest difference"),
        ("index", "At index"),
        ("error", "Error against a float64 run"),
        ("bound", "Allowed error"),
    )
    figures = [(label, figure(details[name])) for name, label in words if details.get(name) is not None]
    bars, cells = charts.histogram(details), charts.heat(details)
    if not figures and not bars and not cells:
        return None
    extent = (max((c.x + c.width for c in cells), default=0), max((c.y + c.height for c in cells), default=0))
    return {"figures": figures, "bars": bars, "cells": cells, "extent": extent}


def _localization(localization: LocalizationReport | None) -> Mapping[str, Any] | None:
    if localization is None:
        return None
    rows = [
        {
            "backend": short_line(row.backend or "as in the script", 80),
            "settings": short_line(row.settings, 120),
            "sign": _SIGNS.get(row.verdict, "untestable"),
            "answer": ANSWERS.get(row.verdict, row.verdict)
            + (f": {short_line(row.reason, 120)}" if row.reason else ""),
            "seconds": f"{row.seconds:.1f}",
        }
        for row in localization.table
    ]
    return {
        "backend": short_line(localization.backend or "", 80),
        "component": short_line(localization.component or "", 80),
        "fixed_by": [short_line(fix) for fix in localization.fixed_by],
        "part": short_line(localization.compiler_bisector.text) if localization.compiler_bisector else "",
        "rows": rows,
    }


def _builds(bisect: BisectReport | None, builds: Mapping[str, BuildFacts]) -> Mapping[str, Any] | None:
    if bisect is None:
        return None
    rows = [
        {
            "build": row.build,
            "date": facts.date or "",
            "commit": (facts.commit or "")[:12],
            "triton": facts.triton or "",
            "kind": row.verdict if row.verdict in ("good", "bad") else "untestable",
            "answer": short_line(f"{row.verdict}: {row.reason}" if row.reason else row.verdict),
            "seconds": f"{row.seconds:.0f}",
        }
        for row in verdicts_in_order(bisect, builds)
        for facts in [builds.get(row.build, BuildFacts(""))]
    ]
    return {
        "ranges": [_range(found) for found in ranges(bisect)],
        "timeline": charts.timeline(bisect, builds) if rows or bisect.listed else None,
        "rows": rows,
        "notices": [short_line(notice) for notice in bisect.notices],
        "left_out": [(short_line(names), short_line(reason)) for names, reason in left_out(bisect.left_out)],
    }


def _range(found: ChangeRange) -> Mapping[str, Any]:
    suspects = [
        {
            "commit": suspect.commit[:12],
            "title": short_line(suspect.title, 160),
            "reasons": [short_line(r) for r in suspect.reasons],
        }
        for suspect in found.result.suspects
    ]
    return {
        "title": found.words.title,
        "sentence": short_line(sentence(found)),
        "proofs": [short_line(proof_sentence(proof)) for proof in found.result.proofs],
        "suspects": suspects,
    }


def _minimal(report: Report) -> Mapping[str, Any] | None:
    minimal, original = report.minimal, report.original
    if minimal is None:
        return None
    before, after = side_by_side(original.source if original else "", minimal.source)
    return {
        "before": before if original and original.source else (),
        "after": after,
        "name": short_line(original.name, 80) if original else "",
        "size": minimal,
        "command": in_one_folder(minimal.command) if minimal.command else "",
        "seconds": f"{minimal.seconds:.0f}",
        "curve": charts.curve(_trajectory(minimal), minimal.candidates),
        "runs": [
            {"build": build, "mode": mode, "status": status, "last_words": short_line(words)}
            for build, mode, status, words in runs(minimal.confirmed)
        ],
    }


def _trajectory(minimal: MinimalScript) -> tuple[ReductionStep, ...]:
    """Return the reduction's curve, with the original script as its first point."""
    start = ReductionStep(0, 0.0, minimal.original.bytes, minimal.original.nodes)
    return minimal.trajectory if start in minimal.trajectory[:1] else (start, *minimal.trajectory)


def _logs(report: Report) -> list[tuple[str, str]]:
    if report.minimal is not None and report.minimal.log:
        return [("The minimal script, compiled", cut_log(report.minimal.log, 200))]
    if report.logs is None:
        return []
    both = (("Compiled", report.logs.compiled), ("Eager", report.logs.eager))
    return [(title, cut_log(log, 200)) for title, log in both if log.strip()]


@dataclass(frozen=True)
class ScriptLine:
    """A line of a script with its number from 1; ``changed`` says that the other script lacks it."""

    number: int
    text: str
    changed: bool


def side_by_side(
    original: str, minimal: str, limit: int = 5000
) -> tuple[tuple[ScriptLine, ...], tuple[ScriptLine, ...]]:
    """Return the lines of both scripts, each marked if the other script lacks it; at most ``limit`` lines of each.

    Lines match by their text without indentation, because unwrapping a block changes the indentation of its lines.
    """
    left = clean(original).rstrip("\n").split("\n")[:limit]
    right = clean(minimal).rstrip("\n").split("\n")[:limit]
    # Blank lines are junk: they extend a match but never start one, because a script has so many of them.
    keys, minimal_keys = ([line.strip() for line in lines] for lines in (left, right))
    blocks = difflib.SequenceMatcher(lambda line: not line, keys, minimal_keys, autojunk=False).get_matching_blocks()
    kept_left = {number for block in blocks for number in range(block.a, block.a + block.size)}
    kept_right = {number for block in blocks for number in range(block.b, block.b + block.size)}
    return _lines(left, kept_left), _lines(right, kept_right)


def _lines(lines: list[str], kept: set[int]) -> tuple[ScriptLine, ...]:
    return tuple(
        ScriptLine(number + 1, line, number not in kept and bool(line.strip())) for number, line in enumerate(lines)
    )
