"""Groups of tests, before and after one of each was shrunk."""

from __future__ import annotations

import json

from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.suite.group import TestGroup, first_groups, merged

ROW = IssueRow("a", state="mismatch", kind="values", signature="s", component="inductor", operators="sin")


def named(name: str, **other: str) -> IssueRow:
    return IssueRow(**{**vars(ROW), "name": name, **other})


def test_tests_with_one_signature_are_a_group_if_they_call_the_same() -> None:
    rows = [
        ROW,
        named("b"),
        named("c"),
        named("d", signature="t"),
        named("e", kind="raises"),
        named("f", kind="raises"),
    ]
    reached = {"a": "x.sin()", "b": "x.sin()", "c": "x.cos()", "d": "x.sin()", "e": "x.sin()", "f": "x.cos()"}
    groups = [group.tests for group in first_groups(rows, reached)]
    assert groups == [("a", "b"), ("c",), ("d",), ("e", "f")]


def test_groups_that_were_shrunk_to_the_same_are_put_together() -> None:
    edge = {"last_good": "2.8.0", "first_bad": "2.9.0"}
    groups = [
        TestGroup(("a", "b"), named("a", **edge)),
        TestGroup(("c",), named("c", **edge)),
        TestGroup(("d",), named("d", last_good="2.9.0", first_bad="2.10.0")),
    ]
    assert [group.tests for group in merged(groups)] == [("a", "b", "c"), ("d",)]


def test_an_edge_is_named_in_the_direction_of_the_search() -> None:
    broke = TestGroup(("a",), named("a", last_good="2.8.0", first_bad="2.9.0"))
    assert (broke.edge, broke.edge_builds) == ("2.8.0 good, 2.9.0 bad", ("2.8.0", "2.9.0"))
    fixed = TestGroup(("a",), named("a", last_bad="2.8.0", first_fixed="2.9.0"))
    assert (fixed.edge, fixed.edge_builds) == ("2.8.0 bad, 2.9.0 fixed", ("2.9.0", "2.8.0"))
    half = TestGroup(("a",), named("a", first_bad="2.9.0"))
    assert (half.edge, half.edge_builds) == ("? good, 2.9.0 bad", None)
    assert TestGroup(("a",), ROW).edge == ""


def test_a_group_is_json() -> None:
    value = json.loads(json.dumps(TestGroup(("a",), ROW, "import torch\n").to_json()))
    assert (value["tests"], value["minimal"], value["signature"]) == (["a"], "import torch\n", "s")
