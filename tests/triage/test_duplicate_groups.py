"""Groups of issues that look like one bug."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.triage.duplicate_groups import duplicate_groups
from torchbisect.triage.issue_row import STATES, IssueRow

BUG = IssueRow("a", state="mismatch", kind="raises", signature="s1", component="dynamo", operators="sin")


@pytest.mark.parametrize(
    ("other", "together"),
    [
        (replace(BUG, name="b"), True),
        (replace(BUG, name="b", operators="cos"), True),
        (replace(BUG, name="b", state="flaky"), True),
        (replace(BUG, name="b", signature="s2"), False),
        (replace(BUG, name="b", component="inductor"), False),
        (replace(BUG, name="b", first_bad="2.9.0"), False),
        (replace(BUG, name="b", state="none"), False),
        (replace(BUG, name="b", state="failed"), False),
    ],
)
def test_issues_with_one_signature_are_grouped_unless_other_facts_differ(other: IssueRow, together: bool) -> None:
    assert bool(duplicate_groups([BUG, other])) is together


def test_wrong_numbers_alone_do_not_make_one_bug() -> None:
    wrong = replace(BUG, kind="values")
    assert not duplicate_groups([wrong, replace(wrong, name="b", operators="cos")])
    assert duplicate_groups([wrong, replace(wrong, name="b")])


def test_one_commit_joins_two_signatures() -> None:
    rows = [
        replace(BUG, bad_commit="c" * 40),
        replace(BUG, name="b", signature="s2", component="inductor", bad_commit="c" * 40),
        replace(BUG, name="c", signature="s2", component="inductor", bad_commit="c" * 40),
        replace(BUG, name="d", signature="s3"),
    ]
    (group,) = duplicate_groups(rows)
    assert group.names == ("a", "b", "c")
    assert group.first == "a"
    assert set(group.reasons) == {"same signature", "same first bad commit"}


few = st.sampled_from(["", "1", "2"])
rows = st.lists(
    st.builds(
        IssueRow,
        name=st.uuids().map(str),
        state=st.sampled_from(STATES),
        kind=st.sampled_from(["values", "raises"]),
        signature=few,
        component=few,
        operators=few,
        bad_commit=few,
    ),
    max_size=12,
)


@given(rows)
def test_groups_are_disjoint_ordered_and_justified(found: list[IssueRow]) -> None:
    """Members of a group share a signature or a commit with another member; other issues share no commit."""
    made = duplicate_groups(found)
    names = [name for group in made for name in group.names]
    place = {row.name: number for number, row in enumerate(found)}
    assert len(set(names)) == len(names)
    assert [place[group.first] for group in made] == sorted(place[group.first] for group in made)
    by_name = {row.name: row for row in found}
    for group in made:
        assert group.reasons
        assert [place[name] for name in group.names] == sorted(place[name] for name in group.names)
        for name in group.names:
            others = [by_name[other] for other in group.names if other != name]
            assert any(
                (by_name[name].signature and by_name[name].signature == other.signature)
                or (by_name[name].bad_commit and by_name[name].bad_commit == other.bad_commit)
                for other in others
            )
    for one, other in itertools.combinations([row for row in found if row.name not in names], 2):
        if {one.state, other.state} <= {"mismatch", "flaky"}:
            assert not (one.bad_commit and one.bad_commit == other.bad_commit)
