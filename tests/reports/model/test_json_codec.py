"""Encoding of dataclasses as JSON, and decoding."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.reports.model.json_codec import DecodeError, decode, encode
from torchbisect.reports.model.report import SCHEMA, InputError, Report


@dataclass(frozen=True)
class Leaf:
    name: str
    size: int = 0
    weight: float = 0.0


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    color: Literal["green", "brown"] = "green"
    best: Leaf | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    named: dict[str, Leaf] = field(default_factory=dict)
    old: bool = False


leaves = st.builds(Leaf, st.text(), st.integers(), st.floats(allow_nan=False))
trees = st.builds(
    Tree,
    st.lists(leaves).map(tuple),
    st.sampled_from(["green", "brown"]),
    st.none() | leaves,
    st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers())),
    st.dictionaries(st.text(), leaves),
    st.booleans(),
)


@given(trees)
def test_encoded_values_are_decoded_again(tree: Tree) -> None:
    text = json.dumps(encode(tree), allow_nan=False)
    assert decode(Tree, json.loads(text)) == tree


def test_numbers_that_json_lacks() -> None:
    assert encode([math.nan, math.inf, -math.inf, 1.5]) == ["nan", "inf", "-inf", 1.5]
    assert math.isnan(decode(Leaf, {"name": "a", "weight": "nan"}).weight)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({}, "report lacks 'leaves'"),
        ({"leaves": {}}, "report.leaves should be a list"),
        ({"leaves": [{"name": 3}]}, "report.leaves[0].name should be a text, not 3"),
        ({"leaves": [{"name": "a", "size": True}]}, "report.leaves[0].size should be a whole number, not True"),
        ({"leaves": [], "color": "blue"}, "report.color should be one of 'green', 'brown'"),
        ({"leaves": [], "old": 1}, "report.old should be true or false"),
        ({"leaves": [], "named": {"x": None}}, "report.named.x should be an object"),
        ({"leaves": [{"name": "a", "weight": 10**400}]}, "report.leaves[0].weight should be a number"),
        ([], "report should be an object"),
    ],
)
def test_an_error_names_the_path_of_a_wrong_value(data: Any, where: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Tree, data)
    assert where in str(caught.value)


def test_unknown_keys_are_ignored() -> None:
    assert decode(Leaf, {"name": "a", "height": 3}) == Leaf("a")


@pytest.mark.parametrize("data", [None, [], "x", {}, {"schema": "1"}, {"schema": SCHEMA}])
def test_other_values_are_an_input_error(data: Any) -> None:
    with pytest.raises(InputError, match="not a torchbisect report"):
        Report.from_json(data)


def test_a_newer_schema_is_named() -> None:
    with pytest.raises(InputError, match="newer torchbisect"):
        Report.from_json({"schema": SCHEMA + 1})
