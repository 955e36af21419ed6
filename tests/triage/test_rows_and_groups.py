"""What a triage keeps of an issue, and which issues it takes for one bug."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.reports.model.report import Report
from torchbisect.triage.duplicate_groups import groups
from torchbisect.triage.rows import STATES, Row
from torchbisect.triage.script_operators import operators

BUG = Row("a", state="mismatch", kind="raises", signature="s1", component="dynamo", operators="sin")


def test_a_row_says_what_the_report_says(whole: Report) -> None:
    row = Row("someone/project#7", key="k").with_report(whole, "runs/7")
    assert (row.state, row.kind, row.signature) == ("mismatch", "metadata", "4d0a81f0c2b94f7ea2a1b3c5")
    assert (row.component, row.backend, row.first_bad, row.last_bad, row.first_fixed) == (
        "module: dynamo", "eager", "2.2.2", "2.8.0", "2.9.1",
    )  # fmt: skip
    assert row.operators == "setitem"
    assert "module: dynamo" in row.labels
    assert (row.name, row.key, row.report, row.torch) == ("someone/project#7", "k", "runs/7", "2.8.0+cpu")


@given(st.from_type(Report))
def test_every_report_makes_a_row(report: Report) -> None:
    assert Row("x").with_report(report, "").state in STATES


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
def test_one_signature_and_nothing_that_speaks_against_it(other: Row, together: bool) -> None:
    assert bool(groups([BUG, other])) is together


def test_wrong_numbers_alone_do_not_make_one_bug() -> None:
    wrong = replace(BUG, kind="values")
    assert not groups([wrong, replace(wrong, name="b", operators="cos")])
    assert groups([wrong, replace(wrong, name="b")])


def test_one_commit_joins_two_signatures() -> None:
    rows = [
        replace(BUG, bad_commit="c" * 40),
        replace(BUG, name="b", signature="s2", component="inductor", bad_commit="c" * 40),
        replace(BUG, name="c", signature="s2", component="inductor", bad_commit="c" * 40),
        replace(BUG, name="d", signature="s3"),
    ]
    (group,) = groups(rows)
    assert group.names == ("a", "b", "c")
    assert group.first == "a"
    assert set(group.reasons) == {"same signature", "same first bad commit"}


few = st.sampled_from(["", "1", "2"])
rows = st.lists(
    st.builds(
        Row,
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
def test_groups_are_disjoint_in_order_and_just(found: list[Row]) -> None:
    """Whoever is in a group shares a signature or a commit with another one in it; whoever is in none with nobody."""
    made = groups(found)
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


def test_what_a_script_calls() -> None:
    source = (
        "import torch\ndef f(x):\n    y = x.sin() + torch.cumsum(x, 0)\n    y[0] = 1\n    return y\nf(torch.ones(3))\n"
    )
    assert operators(source) == ("add", "cumsum", "setitem", "sin")


@given(st.text(max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    operators(text)
