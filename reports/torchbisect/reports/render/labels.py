"""Suggest labels for a report, by the rules of PyTorch's own triage.

The rules are those of ``.claude/skills/triaging-issues/`` in PyTorch's repository (``pt2-triage-rubric.md`` and
``labels.json``). ``high priority`` is never suggested: only people set it.
"""

from __future__ import annotations

from torchbisect.reports.model.report import Report

_MODULES = (
    "aotdispatch, compile-time, compiled autograd, correctness (silent), crash, cuda graphs, decompositions, "
    "dynamic shapes, dynamo, error checking, inductor, performance, pt2 accuracy, pt2-dispatcher, regression, "
    "reinplacing, user triton"
)
ALLOWED = frozenset({"oncall: pt2", "triage review"} | {f"module: {name}" for name in _MODULES.split(", ")})

_SILENT = frozenset({"values", "gradients", "mutation", "metadata", "aliasing", "hooks", "side-effects"})
_BY_KIND = {
    "crash": ("module: crash",),
    "missing-raise": ("module: error checking",),
    "values": ("module: pt2 accuracy",),
    "gradients": ("module: pt2 accuracy",),
    "slow": ("module: performance",),
}


def suggest(report: Report) -> tuple[str, ...]:
    """Return the labels that follow from the measurements, in the order in which a triager would set them."""
    if report.mismatch is None:
        return ()
    wanted = ["oncall: pt2", *_components(report), *_BY_KIND.get(report.mismatch.kind, ())]
    silent = report.mismatch.kind in _SILENT
    regression = report.bisect.regression if report.bisect else None
    regressed = regression is not None and regression.last_good is not None and regression.first_bad is not None
    if silent:
        wanted.append("module: correctness (silent)")
    if regressed:
        wanted.append("module: regression")
    if silent or regressed or report.mismatch.kind == "crash" or report.verdict == "flaky":
        wanted.append("triage review")
    return tuple(dict.fromkeys(label for label in wanted if label in ALLOWED))


def _components(report: Report) -> list[str]:
    localization = report.localization
    if localization is None:
        return []
    # The rubric: a bug that dynamic=False avoids belongs to dynamic shapes alone.
    if any(fix.replace(" ", "") == "dynamic=False" for fix in localization.fixed_by):
        return ["module: dynamic shapes"]
    component = (localization.component or "").strip()
    return [component if component.startswith("module: ") else f"module: {component}"]
