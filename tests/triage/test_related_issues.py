"""Pairs of issues that perhaps show one bug."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchbisect.triage.duplicate_groups import duplicate_groups
from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.issue_table import html_page, terminal_table
from torchbisect.triage.related_issues import MOST, message_template, related_issues

SUMMARY = "compiled raises TypeError: cannot index a tensor of shape [3, 4] with 'x1'"
BUG = IssueRow(
    "a",
    state="mismatch",
    kind="raises",
    signature="s1",
    component="dynamo",
    operators="add unfold",
    summary=SUMMARY,
)
OTHER = replace(BUG, name="b", signature="s2", summary="another thing, of which nothing at all is the same")


@pytest.mark.parametrize(
    ("other", "evidence"),
    [
        (OTHER, ("component dynamo, kind raises", "operator unfold")),
        (replace(OTHER, operators="cos"), None),
        (replace(OTHER, component="inductor"), None),
        (replace(OTHER, component="inductor", kind="values"), None),
        (replace(OTHER, operators="add"), None),
        (replace(OTHER, signature="s1"), None),
        (replace(OTHER, state="none"), None),
        (replace(OTHER, bad_commit="d" * 40), None),
    ],
)
def test_two_facts_make_a_pair(other: IssueRow, evidence: tuple[str, ...] | None) -> None:
    found = related_issues([replace(BUG, bad_commit="c" * 40) if other.bad_commit else BUG, other])
    if evidence is None:
        assert found == ()
    else:
        (pair,) = found
        assert pair.names == ("a", "b")
        assert pair.evidence == evidence


def test_messages_that_differ_in_numbers_and_names_are_the_same() -> None:
    other = replace(OTHER, operators="cos", summary=SUMMARY.replace("[3, 4]", "[7, 4]").replace("x1", "arg_0"))
    (pair,) = related_issues([BUG, other])
    assert [fact.split()[0] for fact in pair.evidence] == ["component", "exception"]
    assert message_template("Error: 12 at 0xff") == ""


def test_an_issue_is_in_few_pairs() -> None:
    rows = [replace(BUG, name=f"i{number}", signature=f"s{number}", operators="unfold") for number in range(30)]
    for row in rows:
        assert sum(row.name in pair.names for pair in related_issues(rows)) <= MOST


def test_the_page_and_the_table_name_the_pairs() -> None:
    rows = [BUG, OTHER]
    assert not duplicate_groups(rows)
    page = html_page(rows)
    assert "Perhaps related" in page
    assert "operator unfold" in page
    assert terminal_table(rows) is not None
