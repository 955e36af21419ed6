"""Render ``report.md``: a text for PyTorch's issue form, below GitHub's size limit for a comment."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jinja2

from torchbisect.core.printable import clean, one_line
from torchbisect.reports.model.report import Logs, Report
from torchbisect.reports.model.search_results import BisectReport, ChangeRange, left_out, ranges, sentence
from torchbisect.reports.render import markdown_sections as sections
from torchbisect.reports.render.error_logs import cut_log
from torchbisect.reports.render.labels import suggest
from torchbisect.reports.render.measurement_section import measurement
from torchbisect.reports.sanitize import Markdown, fence, in_one_folder, without_machine_paths

#: GitHub accepts 65,536 characters in a comment. The limit here counts UTF-8 bytes, which is safe for every alphabet.
LIMIT = 65_536
#: The hidden first line of every report, by which programs find its comment.
FIRST_LINE = "<!-- torchbisect:report -->"
_FINGERPRINT = re.compile(r"[0-9a-z]{1,64}")


@dataclass(frozen=True)
class Allowance:
    """Upper limits for the parts of the text: lines of logs, rows of tables, characters of code."""

    eager_log: int = 30
    compiled_log: int = 100
    environment: int = 30_000
    tested: int = 200
    ablation: int = 100
    lines: int = 40
    script: int = 40_000


def _allowances() -> Iterator[Allowance]:
    """Yield limits from generous to tight; they cut the least useful parts first and the minimal script last."""
    allowed = Allowance()
    yield allowed
    for change in (
        {"eager_log": 8},
        {"environment": 12_000},
        {"tested": 60},
        {"compiled_log": 40},
        {"environment": 4_000},
        {"lines": 15, "ablation": 40},
        {"tested": 20, "compiled_log": 20},
        {"script": 20_000},
        {"lines": 6, "ablation": 12, "eager_log": 3, "compiled_log": 8, "environment": 1_500, "tested": 8},
        {"script": 8_000},
        {"script": 2_000, "lines": 3, "ablation": 5},
    ):
        allowed = replace(allowed, **change)
        yield allowed


def render(report: Report, limit: int = LIMIT) -> str:
    """Render the report as Markdown of less than ``limit`` UTF-8 bytes; a limit below about 16,000 may be exceeded."""
    text = ""
    for allowed in _allowances():
        text = _collapse_blank_lines(_TEMPLATE.render(_context(report, allowed)))
        if len(text.encode()) < limit:
            break
    return text


def marker(fingerprint: str) -> str:
    """Return the two first lines of a report: a constant one, then one with the fingerprint of the signature."""
    if not _FINGERPRINT.fullmatch(fingerprint):
        fingerprint = hashlib.sha256(fingerprint.encode("utf-8", "replace")).hexdigest()[:24]
    return f"{FIRST_LINE}\n<!-- torchbisect:signature {fingerprint} -->"


def _only_safe(value: Any) -> Any:
    """Accept only safe Markdown and integers, so that no foreign text gets through a template."""
    if isinstance(value, (Markdown, int)):
        return value
    raise TypeError(f"a template was given {type(value).__name__}, not safe Markdown: {value!r:.80}")


# Autoescaping is for HTML. Here ``finalize`` checks that every value is safe Markdown.
_TEMPLATE = jinja2.Environment(
    loader=jinja2.PackageLoader("torchbisect.reports"),
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
    finalize=_only_safe,
).get_template("report.md.j2")

_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


def _collapse_blank_lines(text: str) -> str:
    """Reduce runs of blank lines outside code to one."""
    pieces, position = [], 0
    for block in _FENCED.finditer(text):
        pieces += [re.sub(r"\n{3,}", "\n\n", text[position : block.start()]), block.group()]
        position = block.end()
    return "".join([*pieces, re.sub(r"\n{3,}", "\n\n", text[position:])]).strip() + "\n"


def _context(report: Report, allowed: Allowance) -> dict[str, Any]:
    mismatch, localization, shown = report.mismatch, report.localization, report.shown_mismatch
    conditions = report.conditions or ()
    labels = suggest(report)
    return {
        "marker": Markdown(marker(mismatch.fingerprint if mismatch else report.verdict)),
        "title": sections.title(report),
        "is_bug": int(shown is not None),
        "headline": sections.headline(report),
        "sides": sections.sides(shown) if shown and report.measurement is None else [],
        "measurement": measurement(report.measurement, report.builds, allowed.tested),
        "original": sections.text(report.original_summary) if report.original_summary else None,
        "script": _script(report, allowed),
        "necessary": sections.condition_lines([c for c in conditions if c.necessary][: allowed.lines]),
        "unnecessary": sections.condition_lines([c for c in conditions if not c.necessary][: allowed.lines]),
        "ablation": _ablation(report, allowed),
        "ranges": [_range(found, report, allowed) for found in ranges(report.bisect)],
        "tested": _tested(report.bisect, report, allowed),
        "workarounds": [sections.span(fix) for fix in localization.fixed_by[: allowed.lines]] if localization else [],
        "unfinished": [
            Markdown(f"{sections.text(part.part, 80)}: {sections.text(part.why)}")
            for part in report.unfinished[: allowed.lines]
        ],
        "notices": [sections.text(notice) for notice in report.notices[: allowed.lines]],
        "command": fence(in_one_folder(one_line(report.command, 1000)), "sh"),
        "labels": Markdown(", ".join(sections.span(label) for label in labels)) if labels else None,
        "made_by": _made_by(report),
        "logs": _logs(report, allowed),
        "environment": sections.environment_lines(report.environment) if report.environment else [],
        "collect_env": _collect_env(report, allowed),
    }


def _script(report: Report, allowed: Allowance) -> Mapping[str, Any] | None:
    minimal, original, command = report.minimal, report.original, None
    if minimal is not None:
        before = minimal.original
        size = f"{minimal.bytes} bytes, {minimal.lines} lines; originally {before.bytes} bytes, {before.lines} lines"
        runs = sections.confirmation_rows(minimal.confirmed[: allowed.lines])
        title, source = "Minimal script", minimal.source
        command = minimal.command
    elif original is not None and original.source:
        size, runs = f"{original.bytes} bytes, {original.lines} lines", []
        title, source = "Original script", original.source
    else:
        return None
    if len(source) > allowed.script:
        source = source[: allowed.script].rpartition("\n")[0] + "\n# [… the rest is left out: the script is too long …]"
    return {
        "title": Markdown(title),
        "size": Markdown(size),
        "runs": runs,
        "fence": fence(source, "python"),
        "command": fence(in_one_folder(one_line(command, 1000)), "sh") if command else None,
    }


def _ablation(report: Report, allowed: Allowance) -> Mapping[str, Any] | None:
    localization = report.localization
    if localization is None:
        return None
    lines = []
    bisector = localization.compiler_bisector
    for words, named in (
        ("The first backend that shows it is", localization.backend),
        ("Likely component:", localization.component),
        ("PyTorch's `compiler_bisector`, run on the script under plain `python`, names", bisector and bisector.text),
    ):
        if named:
            lines.append(Markdown(f"{words} {sections.span(named)}."))
    dropped = len(localization.table) - allowed.ablation
    return {
        "lines": lines,
        "rows": sections.ablation_rows(localization.table[: allowed.ablation]),
        "left_out": Markdown("report.json has the other rows.") if dropped > 0 else None,
    }


def _range(found: ChangeRange, report: Report, allowed: Allowance) -> Mapping[str, Any]:
    lines = sections.end_lines(found, report.builds)
    compare = sections.compare_link(found, report.builds)
    if compare:
        lines.append(Markdown(f"commits between them: {compare}"))
    return {
        "title": Markdown(found.words.title),
        "sentence": sections.text(sentence(found)),
        "lines": lines,
        "proofs": sections.proof_lines(found.result.proofs[: allowed.lines]),
        "suspects": sections.suspect_lines(found.result.suspects[: allowed.lines]),
    }


def _tested(bisect: BisectReport | None, report: Report, allowed: Allowance) -> Mapping[str, Any] | None:
    if bisect is None or not bisect.tested:
        return None
    lines = [sections.text(notice) for notice in bisect.notices[: allowed.lines]]
    if len(bisect.tested) > allowed.tested:
        lines.append(Markdown("The table has the builds nearest to a change; report.json has all."))
    groups = left_out(bisect.left_out)
    lines += [
        Markdown(f"left out: {sections.text(names, 160)}: {sections.text(reason)}")
        for names, reason in groups[: allowed.lines]
    ]
    if len(groups) > allowed.lines:
        lines.append(Markdown("More builds were left out; report.json names them."))
    return {"rows": sections.tested_rows(bisect, report.builds, allowed.tested), "lines": lines}


def _made_by(report: Report) -> Markdown:
    version = report.versions.get("torchbisect")
    name = f"torchbisect {sections.span(version)}" if version else "torchbisect"
    return Markdown(f"<sub>Written by {name} from its measurements; no person has checked it yet.</sub>")


def _logs(report: Report, allowed: Allowance) -> list[Mapping[str, Markdown]]:
    logs = report.logs or Logs()
    if report.minimal is not None and report.minimal.log:
        text = cut_log(report.minimal.log, allowed.compiled_log)
        return [{"title": Markdown("The minimal script, compiled:"), "fence": fence(text)}]
    both = (("Compiled:", logs.compiled, allowed.compiled_log), ("Eager:", logs.eager, allowed.eager_log))
    return [{"title": Markdown(title), "fence": fence(cut_log(log, most))} for title, log, most in both if log.strip()]


def _collect_env(report: Report, allowed: Allowance) -> Markdown | None:
    raw = report.environment.collect_env if report.environment else None
    if not raw or not raw.strip():
        return None
    text = without_machine_paths(clean(raw[: 2 * allowed.environment])).strip("\n")
    if len(text) > allowed.environment:
        text = text[: allowed.environment].rpartition("\n")[0] + "\n[… the rest is left out …]"
    return fence(text)
