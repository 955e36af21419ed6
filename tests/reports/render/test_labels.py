"""Suggested labels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.reports.model.report import LocalizationReport, MismatchReport, Report
from torchbisect.reports.model.search_results import BisectReport, Regression
from torchbisect.reports.render.labels import ALLOWED, suggest

#: Whole reports are slow to generate.
FEW = settings(max_examples=settings.default.max_examples // 4)


@given(st.from_type(Report))
@FEW
def test_only_known_labels_are_suggested(report: Report) -> None:
    labels = suggest(report)
    assert set(labels) <= ALLOWED
    assert len(set(labels)) == len(labels)
    assert "high priority" not in labels


@pytest.mark.parametrize(
    ("kind", "component", "labels"),
    [
        ("metadata", "dynamo", ["oncall: pt2", "module: dynamo", "module: correctness (silent)", "triage review"]),
        ("raises", "module: inductor", ["oncall: pt2", "module: inductor"]),
        ("raises", "made up", ["oncall: pt2"]),
        ("crash", None, ["oncall: pt2", "module: crash", "triage review"]),
        ("missing-raise", "decompositions", ["oncall: pt2", "module: decompositions", "module: error checking"]),
    ],
)
def test_labels_of_kinds_and_components(whole: Report, kind: str, component: str | None, labels: list[str]) -> None:
    report = replace(
        whole, mismatch=MismatchReport(kind, "x"), localization=LocalizationReport("eager", component), bisect=None
    )
    assert list(suggest(report)) == labels


def test_a_bug_fixed_by_dynamic_false_is_labeled_dynamic_shapes_only(whole: Report) -> None:
    report = replace(
        whole, localization=LocalizationReport("inductor", "module: inductor", fixed_by=("dynamic = False",))
    )
    assert [label for label in suggest(report) if label in ("module: inductor", "module: dynamic shapes")] == [
        "module: dynamic shapes"
    ]


def test_a_regression_needs_both_ends(whole: Report) -> None:
    both = replace(whole, bisect=BisectReport(regression=Regression("2.4.1", "2.5.0")))
    one = replace(whole, bisect=BisectReport(regression=Regression(None, "2.2.2")))
    assert "module: regression" in suggest(both)
    assert "module: regression" not in suggest(one)


def test_no_mismatch_gets_no_label(whole: Report) -> None:
    assert suggest(replace(whole, verdict="none", mismatch=None)) == ()
