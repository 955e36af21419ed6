"""The row of an issue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.reports.model.report import Report
from torchbisect.triage.issue_row import STATES, IssueRow, called_operators


def test_a_row_has_the_facts_of_its_report(whole: Report) -> None:
    row = IssueRow("someone/project#7", key="k").with_report(whole, "runs/7")
    assert (row.state, row.kind, row.signature) == ("mismatch", "metadata", "4d0a81f0c2b94f7ea2a1b3c5")
    assert (row.component, row.backend, row.first_bad, row.last_bad, row.first_fixed) == (
        "module: dynamo", "eager", "2.2.2", "2.8.0", "2.9.1",
    )  # fmt: skip
    assert row.operators == "setitem"
    assert "module: dynamo" in row.labels
    assert (row.name, row.key, row.report, row.torch) == ("someone/project#7", "k", "runs/7", "2.8.0+cpu")


@given(st.from_type(Report))
def test_every_report_makes_a_row(report: Report) -> None:
    assert IssueRow("x").with_report(report, "").state in STATES


def test_called_operators() -> None:
    source = (
        "import torch\ndef f(x):\n    y = x.sin() + torch.cumsum(x, 0)\n    y[0] = 1\n    return y\nf(torch.ones(3))\n"
    )
    assert called_operators(source) == ("add", "cumsum", "setitem", "sin")


@given(st.text(max_size=60))
def test_no_text_crashes_it(text: str) -> None:
    called_operators(text)
